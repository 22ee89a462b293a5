package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// in is the metadata of an object in the namespace of the agents of add-ons.
func in(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: name}
}

// Shows: hub/story-hosted
func TestAnAgentRunsOnAHostingCluster(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "fog", file: "hosted.yaml"}
	s.apply()
	s.says(west, "HostingClusterValidity", metav1.ConditionTrue, "HostingClusterValid")
	s.says(west, "HostingManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	s.says(west, "ManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	s.runs(west)
	d := get(t, east, names.NamespaceAgentAddon, "fog", &appsv1.Deployment{})
	assert.Equal(t, []string{"--for=west"}, d.Spec.Template.Spec.Containers[0].Args)
	get(t, west, names.NamespaceAgentAddon, "fog-access", &corev1.ServiceAccount{})
	goes(t, west, &appsv1.Deployment{ObjectMeta: in("fog")}, &corev1.ConfigMap{ObjectMeta: in("fog-alone")})
	goes(t, east, &corev1.ServiceAccount{ObjectMeta: in("fog-access")}, &corev1.ConfigMap{ObjectMeta: in("fog-alone")})

	s.deleteManagement()
	get(t, east, names.NamespaceAgentAddon, "fog-goodbye", &batchv1.Job{})
	s.says(west, "HookManifestCompleted", metav1.ConditionFalse, "HookManifestIsNotCompleted")
	get(t, east, names.NamespaceAgentAddon, "fog", &appsv1.Deployment{})
	finish(t, east, "fog-goodbye", corev1.PodSucceeded)
	goes(t, west, &corev1.ServiceAccount{ObjectMeta: in("fog-access")})
	goes(t, east, &appsv1.Deployment{ObjectMeta: in("fog")}, &batchv1.Job{ObjectMeta: in("fog-goodbye")})
	goes(t, local, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: west, Name: "fog"}},
		&addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "fog"}})
}
