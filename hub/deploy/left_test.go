package deploy

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
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

// Kubernetes may need minutes until it collects what an earlier add-on of the name left: its finalizer was taken off by
// hand while its hook ran, and it was created again.
//
// Shows: hub/earlier-works
func TestWhatAnEarlierAddOnLeftGoesAtOnce(t *testing.T) {
	earlier := []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "a", UID: "earlier"}}
	hook := func() *workv1.ManifestWork {
		work := hookWork(t, "True")
		work.OwnerReferences = earlier
		return work
	}
	role := func(owners ...metav1.OwnerReference) *rbacv1.RoleBinding {
		binding := roleBinding("c1", "c1", "a")
		binding.OwnerReferences = owners
		return binding
	}
	deletes := func(steps []workStep) (names []string) {
		for _, s := range steps {
			if s.Verb == reconcile.Delete {
				names = append(names, s.Before.Name)
			}
		}
		return names
	}

	f := factsOf(configMap("a", 1))
	f.works = []*workv1.ManifestWork{hook()}
	assert.Equal(t, []string{"addon-a-pre-delete"}, deletes(decide(f).works), "the next hook would not start")
	f.works[0].OwnerReferences = append(f.works[0].OwnerReferences, metav1.OwnerReference{Kind: "Other", Name: "x", UID: "x"})
	assert.Empty(t, deletes(decide(f).works), "it is of others, too")

	d := leavingFacts(finalizerHook)
	d.rendering.Objects = append(d.rendering.Objects, hookJob())
	d.works = append(d.works, hook())
	assert.Contains(t, deletes(decideDeletion(d).works), "addon-a-pre-delete", "the hook of the present add-on waits for it")

	for sentence, tc := range map[string]struct {
		binding *rbacv1.RoleBinding
		goes    bool
	}{
		"a role that the add-on does not ask for any more": {role(earlier...), true},
		"one that is of others, too":                       {role(earlier[0], metav1.OwnerReference{Kind: "Other", UID: "x"}), false},
		"one of no owner":                                  {role(), false},
		"one of another add-on":                            {role(metav1.OwnerReference{Kind: "ManagedClusterAddOn", Name: "b", UID: "b"}), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.bindings = []*rbacv1.RoleBinding{tc.binding}
			assert.Equal(t, tc.goes, len(planBindings(f, nil)) == 1)
			assert.Equal(t, tc.goes, len(dropUnasked(f)) == 1)
		})
	}
}
