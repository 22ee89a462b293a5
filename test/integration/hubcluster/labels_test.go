package hubcluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/feature-labels
func TestLabelsOfAClusterFollowTheHealthOfItsAddOns(t *testing.T) {
	t.Parallel()
	const cluster, addOn = "mirror", "mirrored"
	createLabelled(t, cluster, nil)
	createAddon(t, addOn, nil)
	createMine(t, cluster, addOn)
	label := func(want string) {
		t.Helper()
		suite.Eventually(t, func() error {
			return equal(want, getCluster(t, cluster).Labels["feature.open-cluster-management.io/addon-"+addOn])
		})
	}
	label("unreachable")
	for _, step := range []struct {
		status metav1.ConditionStatus
		label  string
	}{
		{metav1.ConditionTrue, "available"}, {metav1.ConditionFalse, "unhealthy"},
		{metav1.ConditionUnknown, "unreachable"}, {metav1.ConditionTrue, "available"},
	} {
		suite.Eventually(t, func() error {
			found := getAddon(t, cluster, addOn)
			meta.SetStatusCondition(&found.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ManagedClusterAddOnConditionAvailable, Status: step.status, Reason: "ByAgent",
			})
			return plane.Client.Status().Update(t.Context(), found)
		})
		label(step.label)
	}
	// What another client changes is put right.
	patch(t, getCluster(t, cluster), `{"metadata":{"labels":{"feature.open-cluster-management.io/addon-`+addOn+`":"unhealthy"}}}`)
	label("available")
	require.NoError(t, plane.Client.Delete(t.Context(), getAddon(t, cluster, addOn)))
	label("")
}
