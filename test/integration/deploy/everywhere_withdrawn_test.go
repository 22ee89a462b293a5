package deploy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/test/suite"
)

// An administrator consents with the command of RegistrationApplied, which grants bind and bind-in-all-namespaces, and
// takes that back. What is bound stays that of the agent alone: Kubernetes lets nobody patch a binding who may not bind
// its role, also to take a subject away, so the stranger goes in another way.
//
// Shows: hub/all-namespaces
func TestAStrangerGoesFromABindingInAllNamespacesAfterAllConsentWasTakenBack(t *testing.T) {
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "withdrawn-reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"},
	}}}
	require.NoError(t, plane.Client.Create(ctx, role))
	consent(t, "withdrawn-consent", []string{"bind", "bind-in-all-namespaces"}, role.Name)
	with := "          - {type: AllNamespaces, allNamespaces: {clusterRoleName: withdrawn-reader}}\n" + everywhere
	f := install(t, "withdrawn", everywhere, with)
	f.touched(t, "the role is bound", func() bool { return f.wide(ctx) != nil })

	withdrawn := metav1.ObjectMeta{Name: "withdrawn-consent"}
	require.NoError(t, plane.Client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: withdrawn}))
	require.NoError(t, plane.Client.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: withdrawn}))
	stranger := f.wide(ctx)
	stranger.Subjects = append(stranger.Subjects, group("strangers")...)
	require.NoError(t, plane.Client.Update(ctx, stranger))
	f.annotate(t, "touched", "once-more")
	suite.Eventually(t, func() error {
		if is := f.wide(ctx); is != nil && len(is.Subjects) != 1 {
			return fmt.Errorf("a stranger has the role in all namespaces: %+v", f.get(ctx).Status.Conditions)
		}
		return nil
	})
}
