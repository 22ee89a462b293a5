package configure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

func quota() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, "x", errors.New("exceeded quota"))
}

// c1 ran with the first content, a user deleted that, and a quota refuses to store it again. c2 and the new c3 have
// the second one, which is stored.
func TestALostContentOfAnotherClusterHoldsNoOtherCluster(t *testing.T) {
	s := newStoring(t)
	s.runs("c1", s.level("one"))
	first := s.stored()[0]
	two := s.level("two")
	other := s.runs("c2", two)
	require.Len(t, s.stored(), 2)
	require.Equal(t, []string{"c1"}, s.deletes(first))
	// It is not needed any more: c1 goes on before its pass.
	var c1 addonv1beta1.ManagedClusterAddOn
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: "hello"}, &c1))
	c1.Status.ConfigReferences = fixture.AddOn("c1", fixture.Has(s.config, two)).Status.ConfigReferences
	require.NoError(t, s.Update(t.Context(), &c1))
	s.refused = quota()
	fresh := fixture.AddOn("c3")
	fresh.Spec.Configs = []addonv1beta1.AddOnConfig{s.config}
	for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{other, fresh} {
		result, err := s.c.Configure(t.Context(), addOn)
		require.NoError(t, err)
		assert.NoError(t, result.Err, "%s is not installed", addOn.Namespace)
		after := addOn.DeepCopy()
		result.Record(after, addon.Progress{Now: fixture.Noon()})
		configured := meta.FindStatusCondition(after.Status.Conditions, "Configured")
		require.NotNil(t, configured)
		assert.Equal(t, "True", string(configured.Status), "%s: %s", addOn.Namespace, configured.Message)
	}
}

// All clusters wait for one content. What a quota refuses is not tried by each of them; what failed may be well with the
// next try.
func TestAContentThatIsRefusedIsTriedOnceForAFleet(t *testing.T) {
	for sentence, tc := range map[string]struct {
		err   error
		tries int
	}{
		"a quota refuses it":                {quota(), 1},
		"the API server fails for a moment": {apierrors.NewInternalError(errors.New("no leader")), 300},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			s.level("one")
			tries, again := 0, 0
			clock := clocktesting.NewFakePassiveClock(fixture.Noon())
			s.c.Store.Clock = clock
			s.c.Store.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					tries++
					return tc.err
				},
			})
			addOn := fixture.AddOn("c")
			addOn.Spec.Configs = []addonv1beta1.AddOnConfig{s.config}
			for range 300 {
				result, err := s.c.Configure(t.Context(), addOn)
				require.NoError(t, err)
				if result.Unstored != nil {
					again++
				}
			}
			assert.Equal(t, tc.tries, tries)
			assert.Equal(t, 300, again)

			clock.SetTime(fixture.Noon().Add(10 * time.Second))
			s.c.Store.Client = s.WithWatch
			result, err := s.c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.NoError(t, result.Unstored)
			assert.Len(t, s.stored(), 1)
		})
	}
}
