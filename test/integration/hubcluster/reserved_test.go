package hubcluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestReservedNamesAreRefused is about clusters from before there was a policy that refuses them: they get no access,
// also when they are denied after they were accepted.
func TestReservedNamesAreRefused(t *testing.T) {
	withoutClusterPolicy(t)
	createCluster(t, "reserved-beside", true) // The shared roles are there while there is a cluster.
	expectCondition(t, "reserved-beside", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
		"HubClusterAdminAccepted")
	for _, name := range []string{"managed-clusters", "work", "registration", "kube-system", "a.b"} {
		t.Run(name, func(t *testing.T) {
			createCluster(t, name, true)
			expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "Error")
			message := meta.FindStatusCondition(getCluster(t, name).Status.Conditions,
				clusterv1.ManagedClusterConditionHubAccepted).Message
			assert.Contains(t, message, "another name")
			accept(t, name, false)
			suite.Consistently(t, time.Second, func() error { return sharedRolesAreWhole(t) })
			require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
			gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
		})
	}
	require.NoError(t, sharedRolesAreWhole(t), "the shared roles must survive")
}

// sharedRolesAreWhole reports whether a user made a role of all clusters one of a single cluster.
func sharedRolesAreWhole(t *testing.T) error {
	t.Helper()
	var failed error
	for _, name := range []string{"work", "registration"} {
		var role rbacv1.ClusterRole
		key := client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}
		if err := plane.Client.Get(t.Context(), key, &role); err != nil {
			return err
		}
		failed = errors.Join(failed, equal("", role.Labels[names.LabelClusterName]))
	}
	return failed
}

// withoutClusterPolicy has the policy of ManagedClusters deny nothing until the end of the test.
func withoutClusterPolicy(t *testing.T) {
	t.Helper()
	act := func(ctx context.Context, action admissionregistrationv1.ValidationAction) {
		var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
		require.NoError(t, plane.Client.Get(ctx, client.ObjectKey{Name: "managedclusters.spokelet.io"}, &binding))
		binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{action}
		require.NoError(t, plane.Client.Update(ctx, &binding))
	}
	act(t.Context(), admissionregistrationv1.Audit)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		act(ctx, admissionregistrationv1.Deny)
		suite.Eventually(t, func() error {
			reserved := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "managed-clusters"}}
			err := plane.Client.Create(ctx, reserved, client.DryRunAll)
			return equal(true, apierrors.IsInvalid(err))
		})
	})
}
