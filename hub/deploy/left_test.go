package deploy

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// The add-on was made again, and the deletion of a work of the earlier one fails once. What that work reports is about
// the earlier add-on.
//
// Shows: hub/earlier-works
func TestAWorkOfAnEarlierAddOnThatCannotBeDeletedIsNoneOfTheNextOne(t *testing.T) {
	f := factsOf(configMap("a", 1))
	earlier := f.addOn.DeepCopy()
	earlier.UID = "earlier"
	former := factsOf(configMap("a", 1))
	former.addOn = earlier
	former, _ = simulate(t, former)
	require.Len(t, former.works, 1)
	work := former.works[0]
	work.Status.Conditions = []metav1.Condition{
		{Type: workv1.WorkApplied, Status: metav1.ConditionTrue}, {Type: workv1.WorkAvailable, Status: metav1.ConditionTrue},
	}
	f.works = []*workv1.ManifestWork{work}
	var progress addon.Progress
	f.configuration.Record = func(_ *addonv1beta1.ManagedClusterAddOn, p addon.Progress) { progress = p }

	p := decide(f)
	require.ErrorContains(t, p.worksErr, "waiting until the ManifestWorks of an earlier add-on a are gone")
	require.Len(t, p.works, 1)
	require.Equal(t, reconcile.Delete, p.works[0].Verb)
	require.Empty(t, works.Set{AddOn: f.addOn, Side: works.Managed, Purpose: works.Deploy, Namespace: "c1"}.Select(f.works))

	after := conclude(f, p, results{bindings: make([]error, len(p.bindings)), works: []error{errors.New("etcd: request timed out")}})
	for _, w := range progress.Works {
		t.Logf("recorded as progress of add-on %s: ManifestWork %s of owner %s", f.addOn.UID, w.Name, w.OwnerReferences[0].UID)
	}
	assert.Empty(t, progress.Works, "the rollout counts the work of the earlier add-on as that of the present one")
	t.Logf("Available: %+v", meta.FindStatusCondition(after.Status.Conditions, "Available"))
	assert.False(t, meta.IsStatusConditionTrue(after.Status.Conditions, "Available"))
}
