package token_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

// reports is what administrators of a hub consent to for add-ons that report in the status of add-ons, renew Leases on the
// hub and write works.
var reports = []rbacv1.PolicyRule{
	{
		APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons"},
		Verbs: []string{"get", "list", "watch"},
	}, {
		APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons/status"},
		Verbs: []string{"patch", "update"},
	}, {
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"get", "create", "update", "patch"},
	}, {
		APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"},
		Verbs: []string{"get", "update", "patch"},
	},
}

// credentialsOf enables the add-ons hello and vault on a cluster, lets hello report, and returns its agent by each kind of
// credential.
func credentialsOf(t *testing.T, cluster string) map[string]client.Client {
	t.Helper()
	accepted(t, cluster)
	for _, name := range []string{"hello", "vault"} {
		install(t, cluster, name, kubeClient("token")).ready(t)
	}
	grant(t, cluster, "hello", reports,
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: cluster, Name: token.ServiceAccountName("hello")},
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups(cluster, "hello")[0]})
	all := map[string]client.Client{
		"a certificate": plane.As(t, csr.AddonUser(cluster, "hello", "agent"), csr.AddonGroups(cluster, "hello")...),
		"a token":       plane.Account(t, cluster, token.ServiceAccountName("hello")),
	}
	for _, c := range all {
		suite.Eventually(t, func() error {
			return patchStatus(t.Context(), c, cluster, "hello", `{"status":{"healthCheck":{"mode":"Customized"}}}`)
		})
	}
	return all
}

// grant lets subjects do something in the namespace of a cluster.
func grant(t *testing.T, cluster, name string, rules []rbacv1.PolicyRule, subjects ...rbacv1.Subject) {
	t.Helper()
	about := metav1.ObjectMeta{Namespace: cluster, Name: "test-" + name}
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.Role{ObjectMeta: about, Rules: rules}))
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: about, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: about.Name},
	}))
}

// patchStatus tries to change the status of an add-on.
func patchStatus(ctx context.Context, c client.Client, cluster, name, patch string) error {
	on := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	return c.Status().Patch(ctx, on, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}

// conditions is a patch of the status of hello with so many more conditions of so many characters.
func conditions(t *testing.T, cluster string, many, characters int) string {
	t.Helper()
	on := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Namespace: cluster, Name: "hello"}, on))
	all := on.Status.Conditions
	for n := range many {
		all = append(all, metav1.Condition{
			Type: fmt.Sprint("Full", n), Status: metav1.ConditionTrue, Reason: "Full",
			LastTransitionTime: metav1.Now(), Message: strings.Repeat("x", characters),
		})
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": all}})
	require.NoError(t, err)
	return string(raw)
}

const (
	moved     = `{"status":{"namespace":"attacker"}}`
	forgotten = `{"status":{"registrations":null}}`
	others    = `{"status":{"registrations":[{"signerName":"example.com/signer","subject":{"user":"other"}}]}}`
)

// anotherAccount is a patch by which the token of vault would be replaced.
func anotherAccount(t *testing.T, cluster string) string {
	t.Helper()
	said := token.Ready(cluster, "vault", "forged")
	said.LastTransitionTime = metav1.Now()
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{*said}}})
	require.NoError(t, err)
	return string(raw)
}

// An agent of an add-on could have the credential of another one stored where it reads it, or have it deleted.
//
// Shows: security/credential-of-another-add-on
func TestTheCredentialOfAnAddOnNeitherMovesNorRemovesThatOfAnother(t *testing.T) {
	t.Parallel()
	const cluster = "t-moves"
	for who, c := range credentialsOf(t, cluster) {
		for what, patch := range map[string]string{
			"moves it": moved, "removes it": forgotten, "registers another": others,
			"says that there is another account": anotherAccount(t, cluster),
		} {
			err := patchStatus(t.Context(), c, cluster, "vault", patch)
			require.ErrorContains(t, err, "addon-config-references.spokelet.io", "%s %s", who, what)
			require.ErrorContains(t, err, "An administrator of the hub grants it")
		}
		whole := &addonv1alpha1.ManagedClusterAddOn{}
		suite.Eventually(t, func() error { // The hub manager may write in between.
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: cluster, Name: "hello"}, whole); err != nil {
				return err
			}
			whole.Status.Conditions = append(whole.Status.Conditions, metav1.Condition{
				Type: "Heard", Status: metav1.ConditionTrue, Reason: "Heard", LastTransitionTime: metav1.Now(),
			})
			return c.Status().Update(t.Context(), whole, client.DryRunAll)
		})
	}
}

// The agent of the cluster declares its driver, and programs of authors on the hub, such as those of addon-framework,
// write the registrations and the namespace, with the right to the status alone.
func TestWhoServesAnAddOnWritesWhatItRegisters(t *testing.T) {
	t.Parallel()
	const cluster = "t-serves"
	credentialsOf(t, cluster)
	program := plane.Namespace(t, "program")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: program, Name: "controller"}}
	require.NoError(t, plane.Client.Create(t.Context(), account))
	writer := csr.AddonUser(cluster, "writer", "agent")
	status := []rbacv1.PolicyRule{reports[1]}
	grant(t, cluster, "program", status, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: program, Name: "controller"})
	writes := []rbacv1.PolicyRule{reports[1], {
		APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"update"},
	}}
	grant(t, cluster, "writer", writes, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: writer})
	agent, _ := agentOf(t, cluster)
	for who, c := range map[string]client.Client{
		"the agent of the cluster": agent, "a program on the hub": plane.Account(t, program, "controller"),
		"an agent that may write the add-on": plane.As(t, writer), "an administrator": plane.Client,
	} {
		for _, patch := range []string{moved, forgotten, others} {
			suite.Eventually(t, func() error { return patchStatus(t.Context(), c, cluster, "vault", patch) })
		}
		assert.NoError(t, patchStatus(t.Context(), c, cluster, "vault", moved), who)
	}
}

// Shows: security/full-status
func TestTheTokenOfAnAddOnFillsNoStatusAndNoManagedFields(t *testing.T) {
	t.Parallel()
	const cluster = "t-fills"
	now := metav1.Now()
	fields := []metav1.ManagedFieldsEntry{{
		Manager: "full", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: workv1.GroupVersion.String(), Time: &now,
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%s":{}}}}`, strings.Repeat("x", 200_000))),
	}}
	all := credentialsOf(t, cluster)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "full"}}
	require.NoError(t, plane.Client.Create(t.Context(), work))
	for who, c := range all {
		err := patchStatus(t.Context(), c, cluster, "hello", conditions(t, cluster, 40, 32000))
		require.ErrorContains(t, err, "agent-status-sizes.spokelet.io", who)
		fresh := &workv1.ManifestWork{}
		suite.Eventually(t, func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(work), fresh) })
		fresh.ManagedFields = fields
		require.ErrorContains(t, c.Update(t.Context(), fresh, client.DryRunAll), "managed-fields-sizes.spokelet.io", who)
	}
}

// Shows: security/filled-objects
func TestTheCredentialOfAnAddOnKeepsNoLeaseAndNoWorkByFinalizers(t *testing.T) {
	t.Parallel()
	const cluster = "t-keeps"
	all := credentialsOf(t, cluster)
	about := metav1.ObjectMeta{Namespace: cluster, Name: names.LeaseCluster}
	lease, work := &coordinationv1.Lease{ObjectMeta: about}, &workv1.ManifestWork{ObjectMeta: about}
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), lease.DeepCopy())))
	require.NoError(t, plane.Client.Create(t.Context(), work.DeepCopy()))
	change := func(c client.Client, o client.Object, patch string) error {
		copied, ok := o.DeepCopyObject().(client.Object)
		require.True(t, ok)
		return c.Patch(t.Context(), copied, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
	many := make([]string, 17)
	for n := range many {
		many[n] = fmt.Sprint("example.com/f", n)
	}
	full, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": many}})
	require.NoError(t, err)
	renewed := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Unix(1, 0).UTC().Format(metav1.RFC3339Micro))
	for who, c := range all {
		require.NoError(t, change(c, lease, renewed), who)
		err := change(c, lease, `{"metadata":{"finalizers":["example.com/for-ever"]}}`)
		require.ErrorContains(t, err, "hub-agent-leases.spokelet.io", who)
		require.ErrorContains(t, change(c, work, string(full)), "hub-agent-works.spokelet.io", who)
		require.NoError(t, change(c, work, `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/hook"]}}`),
			"what an administrator consented to, %s may", who)
	}
}

// Shows: security/own-label-only
func TestTheTokenOfAnAddOnAsksForCertificatesOfItsClusterOnly(t *testing.T) {
	t.Parallel()
	const cluster = "t-labels"
	accepted(t, cluster)
	install(t, cluster, "hello", kubeClient("token")).ready(t)
	elsewhere := plane.Namespace(t, "joins")
	for _, at := range []string{elsewhere, cluster} {
		require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: at, Name: "hello-agent"}})))
	}
	bind := func(name, role, namespace string) {
		require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "hello-agent"}},
		}))
	}
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "test-asks"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"},
		}},
	}))
	bind("test-asks", "test-asks", cluster)
	bind("test-joins", "open-cluster-management:bootstrap", elsewhere)
	ask := func(c client.Client, label string) error {
		key, err := csr.NewKey()
		require.NoError(t, err)
		request, err := csr.ForCluster(label, "agent").Build(key)
		require.NoError(t, err)
		return c.Create(t.Context(), request, client.DryRunAll)
	}
	addOn, joins := plane.Account(t, cluster, "hello-agent"), plane.Account(t, elsewhere, "hello-agent")
	suite.Eventually(t, func() error { return ask(addOn, cluster) })
	require.ErrorContains(t, ask(addOn, "another"), "agent-request-labels.spokelet.io")
	suite.Eventually(t, func() error { return ask(joins, "another") })
}
