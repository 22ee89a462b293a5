package works_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// shippedRole is the ClusterRole for authors of works without an executor, by the name that it has on an OCM hub.
const shippedRole = "open-cluster-management:cluster-manager-work-executor-admin:webhook"

// TestTheShippedRoleGivesTheRightsOfTheAgent binds the ClusterRole that the installation brings for authors of works
// without an executor, where such works take a right: it holds in the namespaces in which it is bound.
// Shows: work/executor-nil-right
func TestTheShippedRoleGivesTheRightsOfTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checked()
	author := w.author(w.cluster + "-ann")
	w.forbidden(author.Create(t.Context(), w.filled("plain", goodManifest)), withoutExecutor)
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: "ann-without-executor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shippedRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.cluster + "-ann"}},
	})
	// The authorizer of the API server learns of new bindings by a watch.
	require.Eventually(t, func() bool {
		return author.Create(t.Context(), w.filled("plain", goodManifest)) == nil
	}, suite.Timeout, suite.Tick)
	other := w.filled("other", goodManifest)
	other.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "apps", Name: "deployer"},
	}}
	w.forbidden(author.Create(t.Context(), other), executors)
}

// TestTheHubManagerMayWriteTheWorksOfAddOns: they have no executor, and must come through where that takes a right,
// also when it is not our webhook that asks for it.
func TestTheHubManagerMayWriteTheWorksOfAddOns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checked()
	manager := plane.Account(t, names.NamespaceHub, names.ServiceAccountManager)
	work := w.filled("addon-hello-deploy-0", goodManifest)
	require.NoError(t, manager.Create(t.Context(), work))
	require.NoError(t, manager.Delete(t.Context(), work))
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: workv1.GroupName, Resource: "manifestworks", Verb: "execute-as", Namespace: w.cluster,
			Name: "system:serviceaccount::klusterlet-work-sa",
		},
	}}
	require.NoError(t, manager.Create(t.Context(), review))
	require.True(t, review.Status.Allowed)
}
