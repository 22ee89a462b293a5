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

// As TestAnAddOnThatKeepsItsConfigurationIsNotPutBackByAnEarlierStatus, for the order of its configurations: another
// one counts with each order, and the hashes in the annotation of a work are the same.
func TestAnAddOnThatKeepsItsConfigurationIsNotPutBackByTheOrderOfAnEarlierStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	one, two := fixture.Desires(fixture.DeploymentConfig("one"), "1"), fixture.Desires(fixture.DeploymentConfig("two"), "2")
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
	addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{two, one}
	addOn.Status.Conditions = []metav1.Condition{{
		Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
	}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(addonapi.AddOnToAlpha(addOn)).Build()
	r := &Reconciler{Live: live, AddOns: addonapi.Client{Client: live}}
	work := func(content string) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{names.AnnotationConfigSpecHash: `{"one":"1","two":"2"}`},
		}}
		w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(content)}}}
		return w
	}
	f := facts{addOn: addOn.DeepCopy(), configuration: addon.Configuration{Choice: addon.Choice{Held: "nobody selects it"}}}
	f.addOn.Status.ConfigReferences = []addonv1beta1.ConfigReference{one, two} // The cache is behind.
	step := workStep{Verb: reconcile.Patch, Before: work(`{"of":"one"}`), After: work(`{"of":"two"}`)}
	stale, err := isStale(r.stale(t.Context(), f, plan{works: []workStep{step}}))
	require.NoError(t, err)
	assert.True(t, stale, "the cluster goes back to the order of before")
}
