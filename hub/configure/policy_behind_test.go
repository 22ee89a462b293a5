package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// live is the API server, which has a policy that the cache does not have yet.
type live struct {
	client.Reader
	policy *policies.AddOnPolicy
}

func (l live) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	all, is := into.(*metav1.PartialObjectMetadataList)
	if !is || all.Kind != "AddOnPolicyList" {
		return l.Reader.List(ctx, into, options...)
	}
	all.Items = []metav1.PartialObjectMetadata{{ObjectMeta: l.policy.ObjectMeta}}
	return nil
}

// A cache is behind, as after a restart whose list came from an API server that is behind: the policy is asked for before
// an add-on gets another content.
func TestACacheThatIsBehindPassesNoPause(t *testing.T) {
	s := newSelected(t, "low", nil) // it is to have "default"
	was := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "p", Generation: 1}}
	is := was.DeepCopy()
	is.Generation, is.Spec.Paused = 2, &policies.Pause{Reason: "incident 7"}
	s.c.Gates = &gate.Reader{Client: &ruling{policy: was}, AddOns: s.c.AddOns}
	s.c.Store.Live = live{s.c.Client, is}
	_, err := s.c.Configure(t.Context(), s.addOn)
	require.True(t, reconcile.IsLostRace(err), "%v", err)
	s.c.Gates.Client = &ruling{policy: is}
	result, err := s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err)
	assert.ErrorContains(t, result.Err, "incident 7")
}
