package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// beforeItGoes requires that the hook of an add-on runs on cluster west and that its agent still does.
func (s story) beforeItGoes() {
	s.Helper()
	get(s.T, west, names.NamespaceAgentAddon, s.addOn+"-goodbye", &batchv1.Job{})
	s.says(west, "HookManifestCompleted", metav1.ConditionFalse, "HookManifestIsNotCompleted")
	d := get(s.T, west, names.NamespaceAgentAddon, s.addOn, &appsv1.Deployment{})
	assert.Nil(s, d.DeletionTimestamp)
}

// leaves waits until nothing of an add-on of hook.yaml is left but its data.
func (s story) leaves() {
	s.Helper()
	goes(s.T, local, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: west, Name: s.addOn}})
	goes(s.T, west, &appsv1.Deployment{ObjectMeta: in(s.addOn)}, &batchv1.Job{ObjectMeta: in(s.addOn + "-goodbye")})
	data := get(s.T, west, names.NamespaceAgentAddon, s.addOn+"-data", &corev1.PersistentVolumeClaim{})
	assert.Nil(s, data.DeletionTimestamp)
	assert.Empty(s, data.OwnerReferences)
}

// Shows: hub/story-hook, hub/story-orphan
func TestAnAddOnSaysGoodbyeAndItsDataStays(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "hail", file: "hook.yaml"}
	s.apply()
	s.runs(west)
	data := get(t, west, names.NamespaceAgentAddon, "hail-data", &corev1.PersistentVolumeClaim{})

	require.NoError(t, plane.Client.Delete(t.Context(),
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: west, Name: s.addOn}}))
	s.beforeItGoes()
	finish(t, west, "hail-goodbye", corev1.PodSucceeded)
	s.leaves()

	s.apply()
	s.runs(west)
	again := get(t, west, names.NamespaceAgentAddon, "hail-data", &corev1.PersistentVolumeClaim{})
	assert.Equal(t, data.UID, again.UID, "the add-on has its data again")
}

// Shows: hub/story-hook-failed
func TestAGoodbyeThatFailsIsReported(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "frost", file: "hook.yaml"}
	s.apply()
	s.runs(west)
	require.NoError(t, plane.Client.Delete(t.Context(),
		&addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: west, Name: s.addOn}}))
	finish(t, west, "frost-goodbye", corev1.PodFailed)
	s.says(west, "addon.spokelet.io/Deleting", metav1.ConditionFalse, "HookFailed", "frost-goodbye")
	s.beforeItGoes()
	finish(t, west, "frost-goodbye", corev1.PodSucceeded)
	s.leaves()
}

// Shows: hub/story-definition-deleted
func TestAGoodbyeIsSaidWhenTheDefinitionAndItsTemplateAreDeleted(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "storm", file: "hook.yaml"}
	s.apply()
	s.runs(west)
	s.deleteManagement()
	require.NoError(t, plane.Client.Delete(t.Context(),
		&addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}}))
	s.beforeItGoes()
	finish(t, west, "storm-goodbye", corev1.PodSucceeded)
	s.leaves()
	goes(t, local, &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}})
}
