package plugin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// A person pauses the sample add-on, approves what waits, and sees that and the windows; each as one who has the right.
//
// Shows: policies/policy-plugin
func TestAPersonRulesTheChangesOfAnAddOn(t *testing.T) {
	keeper := kubeconfig(t, world.hub, "keeper")
	create := func(objects ...client.Object) {
		for _, object := range objects {
			require.NoError(t, world.hub.Client.Create(t.Context(), object))
		}
	}
	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "keeper"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{policies.GroupVersion().Group}, Resources: []string{"addonpolicies"}, Verbs: []string{"list", "create", "patch"},
	}}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "keeper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "keeper"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "keeper"}},
	}, &policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: "december"},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Deny", Schedule: "@yearly", Duration: metav1.Duration{Duration: 366 * 24 * time.Hour}, AddOns: []string{"hello"},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"environment": "demo"}},
		},
	})
	got := run(t, "--kubeconfig", world.viewer, "rollout", "pause", "addon", "hello")
	assert.Equal(t, 3, got.status, "who may only look may not pause: %s", got.errs)

	suite.Eventually(t, func() error { // The rights of the keeper come a moment later.
		got := run(t, "--kubeconfig", keeper, "rollout", "pause", "addon", "hello", "--reason", "incident 7")
		if got.status != 0 {
			return errors.New(got.errs)
		}
		assert.Empty(t, got.errs, "a hub manager has seen it")
		return nil
	})
	got = run(t, "--kubeconfig", world.viewer, "rollout", "status", "addon", "hello")
	assert.Contains(t, got.out, "paused, so no cluster begins to change: incident 7")
	assert.NotContains(t, got.out, "not in force")
	suite.Eventually(t, func() error {
		got := run(t, "--kubeconfig", world.viewer, "get", "windows")
		if !strings.Contains(got.out, "december") || !strings.Contains(got.out, "true") {
			return errors.New(got.out + got.errs)
		}
		return nil
	})
	got = run(t, "--kubeconfig", keeper, "rollout", "resume", "addon", "hello")
	assert.Equal(t, 0, got.status, got.errs)
	assert.Empty(t, got.errs)
	got = run(t, "--kubeconfig", keeper, "rollout", "approve", "addon", "hello")
	assert.Equal(t, 2, got.status, got.out)
	assert.Contains(t, got.errs, "add-on hello needs no approval")
	for _, object := range []client.Object{
		&policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: "december"}},
		&policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}},
	} {
		require.NoError(t, world.hub.Client.Delete(t.Context(), object))
	}
}
