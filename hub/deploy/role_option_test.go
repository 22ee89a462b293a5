package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// The author of a template chooses the name of a role, and Kubernetes accepts "--all" as the name of a ClusterRole.
// "kubectl label clusterrole --all ..." labels every ClusterRole of the hub, so the account of add-ons gets the rights
// of all of them from an administrator who follows the condition.
func TestNoMessageHasACommandInWhichTheNameOfARoleIsAnOption(t *testing.T) {
	forbidden := apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "agent", nil)
	for _, role := range []string{"--all", "-A"} {
		said := explainBinding(bindingStep{Verb: reconcile.Create, After: &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "agent"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}}, "hub/add-ons", forbidden)
		assert.NotContains(t, said, "kubectl label clusterrole "+role+" ", said)
	}
}
