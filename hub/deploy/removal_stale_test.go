package deploy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// The hub manager starts with an API server that is behind for one kind, and deletes works, whose objects go with them.
//
// Shows: hub/removed-when-confirmed
func TestNoWorkIsDeletedByWhatOnlyTheCacheSays(t *testing.T) {
	hosted := func() facts {
		f := hostedFacts("host")
		f, _ = simulate(t, f)
		require.Len(t, f.works, 2)
		return f
	}
	alone := func(f *facts) { f.addOn.Annotations = nil }
	shrinks := func(f *facts) { f.rendering.Objects = f.rendering.Objects[:1] }
	many := func() map[string]string {
		all := map[string]string{}
		for i := range 1000 {
			all[fmt.Sprintf("tier-%d", i)] = strings.Repeat("x", 60)
		}
		return all
	}
	for sentence, tc := range map[string]struct {
		cached, live func(*facts)
		stale        bool
	}{
		"the hosting cluster is not in the cache yet": {cached: func(f *facts) { f.host = nil }, stale: true},
		"the hosting cluster is gone":                 {cached: func(f *facts) { f.host = nil }, live: func(f *facts) { f.host = nil }},
		"an earlier hosting cluster was being deleted": {
			cached: func(f *facts) { f.host.DeletionTimestamp = &metav1.Time{Time: f.now} }, stale: true,
		},
		"the add-on was not hosted":         {cached: alone, stale: true},
		"the add-on is not hosted any more": {cached: alone, live: alone},
		"the same, and people use kubectl apply": {cached: alone, live: func(f *facts) {
			f.addOn.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		}},
		"an earlier add-on was not hosted":     {cached: func(f *facts) { alone(f); f.addOn.Generation-- }, stale: true},
		"fewer objects, and all else is known": {cached: shrinks},
		"fewer objects by earlier values": {cached: func(f *facts) {
			shrinks(f)
			f.addOn.Annotations["addon.open-cluster-management.io/values"] = "{}"
		}, stale: true},
		"fewer objects by an earlier label": {cached: func(f *facts) {
			shrinks(f)
			f.addOn.Labels = map[string]string{"tier": "edge"}
		}, stale: true},
		"fewer objects, and more labels than a cache keeps": {cached: func(f *facts) {
			shrinks(f)
			f.addOn.Labels = many()
			f.addOn.Labels = hubprocess.Labels(f.addOn)
			require.NotEqual(t, many(), f.addOn.Labels)
		}, live: func(f *facts) { f.addOn.Labels = many() }},
		"nothing is deleted": {cached: func(f *facts) {
			f.addOn.Annotations["addon.open-cluster-management.io/values"] = "{}"
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			now := hosted()
			if tc.live != nil {
				tc.live(&now)
			}
			live := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(addonapi.AddOnToAlpha(now.addOn), now.cluster).
				WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf)
			if now.host != nil {
				live = live.WithObjects(now.host)
			}
			r := &Reconciler{Live: live.Build(), AddOns: addonapi.Client{}}
			f := hosted()
			tc.cached(&f)
			planned, err := planWorks(f)
			require.NoError(t, err)
			stale, err := isStale(r.stale(t.Context(), f, plan{works: planned.steps}))
			require.NoError(t, err)
			assert.Equal(t, tc.stale, stale, "%v", verbsOf(planned.steps))
		})
	}
}

func verbsOf(steps []workStep) map[string]reconcile.Verb {
	all := map[string]reconcile.Verb{}
	for _, s := range steps {
		work := s.Before
		if work == nil {
			work = s.After
		}
		all[work.Namespace+"/"+work.Name] = s.Verb
	}
	return all
}
