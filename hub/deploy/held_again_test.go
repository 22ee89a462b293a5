package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// As TestAnAddOnThatKeepsItsConfigurationIsNotPutBackByAnEarlierStatus, where somebody deleted the work. It is made again
// with what the add-on keeps, which the cache does not show.
func TestAWorkThatIsMadeAgainHasWhatItsAddOnKeeps(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	with := func(hash string) []addonv1beta1.ConfigReference {
		return fixture.AddOn("c1", fixture.Desires(fixture.Template("t"), hash)).Status.ConfigReferences
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
	addOn.Status.ConfigReferences = with("new")
	addOn.Status.Conditions = []metav1.Condition{{Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(addonapi.AddOnToAlpha(addOn)).Build()
	work := func(hash string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{names.AnnotationConfigSpecHash: hash},
		}}
	}
	for sentence, step := range map[string]workStep{
		"the work is there (control)": {Verb: reconcile.Patch, Before: work("new"), After: work("old")},
		"the work was deleted":        {Verb: reconcile.Create, After: work("old")},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &Reconciler{Live: live, AddOns: addonapi.Client{Client: live}}
			f := facts{addOn: addOn.DeepCopy(), configuration: addon.Configuration{Choice: addon.Choice{Held: "nobody selects it"}}}
			f.addOn.Status.ConfigReferences = with("old") // the cache is behind
			stale, err := r.stale(t.Context(), f, plan{works: []workStep{step}})
			require.NoError(t, err)
			assert.True(t, stale, "the cluster gets the configuration of before")
		})
	}
}
