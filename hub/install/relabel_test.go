package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// addOnScheme has the add-on API in both versions.
func addOnScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, addonv1beta1.Install(scheme))
	return scheme
}

// It has a template of its placement, and a configuration that it names itself.
func TestWhatAPlacementGaveIsNotedWhereAnAddOnIsBroughtAlongFromThenOn(t *testing.T) {
	scheme := addOnScheme(t)
	tmpl, mine := fixture.Template("t"), fixture.DeploymentConfig("mine")
	addOn := fixture.AddOn("c1", fixture.Has(mine, "m"), fixture.Has(tmpl, "v1"))
	addOn.UID, addOn.Spec.Configs = "u", []addonv1beta1.AddOnConfig{mine}
	addOn.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement, "other": "stays"}
	addOns := addonapi.Client{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(addOn).Build(), Wire: addonapi.WireBeta}
	key := types.NamespacedName{Namespace: "c1", Name: addOn.Name}
	there, err := addOns.PeekAddOn(t.Context(), key)
	require.NoError(t, err)
	r := &Reconciler{AddOns: addOns, Live: addOns.Client}
	require.NoError(t, r.relabel(t.Context(), removals{relabel: []candidate{{addon: there}}}))
	after, err := addOns.GetAddOn(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{names.LabelInstalledBy: names.InstalledByDependency, "other": "stays"}, after.Labels)
	gave := addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Has(tmpl, "v1")})
	assert.Equal(t, gave, addonconfig.ReadContents(after.Annotations[names.AnnotationPlacementGave]))
}

// The placement gave v2 a moment ago, and the cache has the status of before. A write of a status changes no generation.
func TestACacheThatIsBehindNotesWhatAPlacementGave(t *testing.T) {
	scheme := addOnScheme(t)
	for sentence, has := range map[string]addonv1beta1.ConfigReference{
		"content v1 before": fixture.Has(fixture.Template("t"), "v1"), "nothing before": {},
	} {
		t.Run(sentence, func(t *testing.T) {
			tmpl := fixture.Template("t")
			addOn := fixture.AddOn("c1", fixture.Has(tmpl, "v2"))
			addOn.UID, addOn.Generation = "u", 1
			addOn.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(addOn).WithStatusSubresource(addOn).Build()
			addOns := addonapi.Client{Client: live, Wire: addonapi.WireBeta}
			key := types.NamespacedName{Namespace: "c1", Name: addOn.Name}
			cached, err := addOns.GetAddOn(t.Context(), key)
			require.NoError(t, err)
			cached.Status.ConfigReferences = []addonv1beta1.ConfigReference{has}
			if has.DesiredConfig == nil {
				cached.Status.ConfigReferences = nil
			}
			r := &Reconciler{AddOns: addOns, Live: live}
			relabeled := r.relabel(t.Context(), removals{relabel: []candidate{{cluster: "c1", addon: cached}}})
			after, err := addOns.GetAddOn(t.Context(), key)
			require.NoError(t, err)
			if after.Labels[names.LabelInstalledBy] != names.InstalledByDependency {
				t.Log("a lost race, which is fine", relabeled)
				return
			}
			has := addonconfig.ContentsOf(after.Status.ConfigReferences)
			gave := addonconfig.ReadContents(after.Annotations[names.AnnotationPlacementGave])
			assert.True(t, gave.Has(tmpl.ConfigGroupResource, has),
				"hub/configure lacksKind asks this: the add-on on which others depend loses its template")
		})
	}
}
