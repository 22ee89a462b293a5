package attacks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: security/all-namespaces
func TestTheAccountOfAddOnsOnlyTakesSubjectsWhereAConsentInAllNamespacesIsMissing(t *testing.T) {
	ctx := t.Context()
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons}}
	ref := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	groups := csr.AddonGroups("cluster1", "takes")
	agent := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groups[0]}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: groups[0] + ":agent:x"}
	stranger := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "strangers"}
	made := func(name, cluster string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				names.LabelAddonName: "takes", names.LabelAddonTemplate: "", names.LabelClusterName: cluster,
			}},
			Subjects: subjects, RoleRef: ref("takes-role"),
		}
	}
	const name = "open-cluster-management:takes:clusterrole:cluster1:agent"
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: in("", "takes-role"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
		}}},
		&rbacv1.ClusterRole{ObjectMeta: in("", "--all")}, // Kubernetes accepts that name.
		&rbacv1.ClusterRole{ObjectMeta: in("", "bind-takes"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
			ResourceNames: []string{"takes-role"}, Verbs: []string{"bind"},
		}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "bind-takes"), Subjects: account, RoleRef: ref("bind-takes")},
	} {
		require.NoError(t, shared.admin.Create(ctx, object))
		deleteAfterwards(t, object)
	}
	write := func(b *rbacv1.ClusterRoleBinding) error {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": b.Labels}, "subjects": b.Subjects})
		require.NoError(t, err)
		patch := client.RawPatch(types.MergePatchType, raw)
		for { // The hub manager deletes the binding, as it has no such cluster.
			err := shared.admin.Create(ctx, made(name, "cluster1", agent, stranger))
			require.NoError(t, client.IgnoreAlreadyExists(err))
			if err := shared.clients[theAddOns].Patch(ctx, b.DeepCopy(), patch, client.DryRunAll); !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	suite.Eventually(t, func() error { return write(made(name, "cluster1", agent)) })
	for sentence, b := range map[string]*rbacv1.ClusterRoleBinding{
		"another subject":              made(name, "cluster1", agent, user),
		"the stranger stays":           made(name, "cluster1", agent, stranger),
		"the label of another cluster": made(name, "cluster10", agent),
	} {
		err := write(b)
		assert.True(t, apierrors.IsForbidden(err), "%s: the answer is %v", sentence, err)
	}
	assert.NoError(t, write(made(name, "cluster1")))
}
