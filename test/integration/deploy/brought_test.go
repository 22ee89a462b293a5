package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// An add-on whose template is named by its placement is on a cluster with another one that depends on it and brings it
// along. The placement drops the cluster, so that the installer writes label installed-by: dependency
// (hub/install, relabel). It stays with its works.
func TestWhatAPlacementDropsAndAnotherAddOnBringsKeepsItsWorks(t *testing.T) {
	t.Parallel()
	name := "brought"
	f := fixture{addOn: name, cluster: name + "-cluster"}
	f.prepare(t)
	f.apply(t,
		"      defaultConfig: {name: "+name+"}\n", "",
		"spec:\n  supportedConfigs:", "spec:\n  installStrategy: {type: Placements, placements: [{name: p, namespace: "+name+
			"-shared, configs: [{group: addon.open-cluster-management.io, resource: addontemplates, name: "+name+"}]}]}\n  supportedConfigs:")
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: name + "-shared", Name: "p"}}
	require.NoError(t, plane.Client.Create(t.Context(), placement))
	placement.Status.NumberOfSelectedClusters = 1
	placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"p-decision-1"}, ClustersCount: 1}}
	require.NoError(t, plane.Client.Status().Update(t.Context(), placement))
	page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: name + "-shared", Name: "p-decision-1", Labels: map[string]string{
			clusterv1beta1.PlacementLabel: "p", clusterv1beta1.DecisionGroupIndexLabel: "0", clusterv1beta1.DecisionGroupNameLabel: "",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement", Name: "p", UID: placement.UID, Controller: new(true),
		}},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), page))
	page.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: f.cluster}}
	require.NoError(t, plane.Client.Status().Update(t.Context(), page))
	f.enable(t, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
	})
	f.work(t, nil)
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")

	dependent := name + "-gateway"
	f.beside(t, dependent)
	require.NoError(t, plane.Client.Create(t.Context(), &policies.AddOnPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: dependent},
		Spec:       policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{Name: f.addOn, Install: true}}},
	}))

	page.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	require.NoError(t, plane.Client.Status().Update(t.Context(), page))
	placement.Status.NumberOfSelectedClusters, placement.Status.DecisionGroups[0].ClustersCount = 0, 0
	require.NoError(t, plane.Client.Status().Update(t.Context(), placement))
	f.atRest(t)
	require.NoError(t, plane.Client.Patch(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: f.addOn},
	}, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+names.LabelInstalledBy+`":"`+names.InstalledByDependency+`"}}}`))))
	f.atRest(t)
	f.work(t, func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp == nil })
	require.NotEmpty(t, f.get(t.Context()).Status.ConfigReferences)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
}
