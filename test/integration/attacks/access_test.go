package attacks_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/access.yaml
var accessFile []byte

// defineAccess defines an add-on whose agents read Secrets, and enables it on clusters that are accepted here.
func defineAccess(t *testing.T, addOn string, clusters ...string) {
	t.Helper()
	require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll(accessFile, []byte("ADDON"), []byte(addOn))))
	for _, cluster := range clusters {
		require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
		suite.Eventually(t, func() error {
			return shared.enable(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn})
		})
	}
}

// credentialOf returns a client with the certificate of an add-on on a cluster.
func credentialOf(t *testing.T, cluster, addOn string) client.Client {
	t.Helper()
	config, err := shared.plane.User(csr.AddonUser(cluster, addOn, addOn+"-agent"), csr.AddonGroups(cluster, addOn)...)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{Scheme: shared.scheme})
	require.NoError(t, err)
	return c
}

// reads waits until a credential reads the Secrets of namespaces.
func reads(t *testing.T, c client.Client, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		suite.Eventually(t, func() error {
			return c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))
		})
	}
}

// readsNothing waits until a credential may not read the Secrets of namespaces.
func readsNothing(t *testing.T, c client.Client, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		suite.Eventually(t, func() error {
			err := c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))
			if !apierrors.IsForbidden(err) {
				return fmt.Errorf("namespace %s: the answer is %w", namespace, err)
			}
			return nil
		})
	}
}

// Shows: security/denied-add-on
func TestACredentialOfAnAddOnReadsNothingAfterADenial(t *testing.T) {
	defineAccess(t, "ending", "ending-denied", "ending-left", "ending-gone", "ending-stays")
	denied, left := credentialOf(t, "ending-denied", "ending"), credentialOf(t, "ending-left", "ending")
	gone, stays := credentialOf(t, "ending-gone", "ending"), credentialOf(t, "ending-stays", "ending")
	reads(t, denied, "ending-denied", "ending-shared")
	reads(t, left, "ending-left", "ending-shared")
	reads(t, gone, "ending-gone", "ending-shared")
	reads(t, stays, "ending-stays", "ending-shared")

	require.NoError(t, shared.accept(t.Context(), "ending-denied", false))
	readsNothing(t, denied, "ending-denied", "ending-shared")
	require.NoError(t, shared.admin.Delete(t.Context(),
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("ending-left", "ending")}))
	readsNothing(t, left, "ending-left", "ending-shared")
	removeCluster(t, "ending-gone")
	readsNothing(t, gone, "ending-gone", "ending-shared")

	for _, namespace := range []string{"ending-stays", "ending-shared"} {
		require.NoError(t, stays.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)))
	}
	require.NoError(t, shared.accept(t.Context(), "ending-denied", true))
	reads(t, denied, "ending-denied", "ending-shared")
}

// Shows: security/shared-roles
func TestARoleForTheAgentsOfAllClustersGoesWithoutAGap(t *testing.T) {
	defineAccess(t, "former")
	everybody := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "former-shared", Name: "open-cluster-management:former:clusterrole:agent",
			Labels: map[string]string{names.LabelAddonName: "former", names.LabelAddonTemplate: ""},
		},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("", "former")[1],
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "former-secrets"},
	}
	require.NoError(t, shared.admin.Create(t.Context(), everybody))
	one, outsider := credentialOf(t, "former-one", "former"), credentialOf(t, "former-none", "former")
	reads(t, one, "former-shared")
	reads(t, outsider, "former-shared")

	require.NoError(t, shared.join(t.Context(), "former-one", "the agent of former-one"))
	suite.Eventually(t, func() error {
		return shared.enable(t.Context(), client.ObjectKey{Namespace: "former-one", Name: "former"})
	})
	suite.Eventually(t, func() error {
		require.NoError(t, one.List(t.Context(), &corev1.SecretList{}, client.InNamespace("former-shared")))
		err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(everybody), &rbacv1.RoleBinding{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the role of all clusters is still there: %w", err)
		}
		return nil
	})
	reads(t, one, "former-one", "former-shared")
	readsNothing(t, outsider, "former-shared")
}

// Shows: security/foreign-account
func TestAnAgentGetsNoTokenOfAServiceAccountOfOthers(t *testing.T) {
	const cluster, addOn = "account-one", "account"
	require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll(accessFile, []byte("ADDON"), []byte(addOn))))
	require.NoError(t, shared.join(t.Context(), cluster, "the agent of "+cluster))
	foreign := &corev1.ServiceAccount{ObjectMeta: in(cluster, token.ServiceAccountName(addOn))}
	require.NoError(t, shared.admin.Create(t.Context(), foreign))
	mighty := &rbacv1.ClusterRoleBinding{
		ObjectMeta: in("", "account-of-others"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster, Name: foreign.Name}},
	}
	require.NoError(t, shared.admin.Create(t.Context(), mighty))
	deleteAfterwards(t, mighty)
	require.NoError(t, shared.enable(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}))

	agent := shared.clients[who("the agent of "+cluster)]
	enabled := &addonv1alpha1.ManagedClusterAddOn{}
	suite.Eventually(t, func() error {
		if err := agent.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}, enabled); err != nil {
			return err
		}
		if len(enabled.Status.Registrations) == 0 {
			return errors.New("the hub has not said yet what to register")
		}
		return nil
	})
	user := token.User(cluster, addOn)
	suite.Eventually(t, func() error {
		return changeStatus(enabled.DeepCopy(), `{"status":{"kubeClientDriver":"token","registrations":[{"signerName":`+
			`"kubernetes.io/kube-apiserver-client","subject":{"user":"`+user+`"}}]}}`)(t.Context(), agent)
	})
	suite.Eventually(t, func() error {
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(enabled), enabled); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(enabled.Status.Conditions, token.ConditionInfrastructure)
		if condition == nil || condition.Status != metav1.ConditionFalse {
			return fmt.Errorf("condition %s is %v", token.ConditionInfrastructure, condition)
		}
		return nil
	})
	err := tokenOf(cluster, foreign.Name)(t.Context(), agent)
	require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
	err = shared.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: token.RoleName(addOn)}, &rbacv1.Role{})
	require.True(t, apierrors.IsNotFound(err), "the answer is %v", err)
	for _, namespace := range []string{cluster, addOn + "-shared"} {
		var all rbacv1.RoleBindingList
		require.NoError(t, shared.admin.List(t.Context(), &all, client.InNamespace(namespace)))
		for _, binding := range all.Items {
			for _, subject := range binding.Subjects {
				assert.NotEqual(t, foreign.Name, subject.Name, "RoleBinding %s", binding.Name)
			}
		}
	}
}

// Shows: security/foreign-namespace, security/namespace-of-others
func TestABootstrapTokenGetsNoNamespaceOfOthers(t *testing.T) {
	const name, addOn = "argocd", "reader"
	defineAccess(t, addOn)
	require.NoError(t, shared.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: in("", name)}))
	require.NoError(t, shared.admin.Create(t.Context(), &corev1.Secret{ObjectMeta: in(name, "repo-creds")}))
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", name)}
	require.NoError(t, shared.clients[trusted].Create(t.Context(), cluster))
	require.NoError(t, shared.obtain(t.Context(), "the agent of argocd", trusted, csr.ForCluster(name, agentName)))

	label := "kubectl label namespace argocd open-cluster-management.io/cluster-name=argocd"
	says := func(kind string) func() error {
		return func() error {
			if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			condition := meta.FindStatusCondition(cluster.Status.Conditions, kind)
			if condition == nil || condition.Status != metav1.ConditionFalse ||
				!strings.Contains(condition.Message, label) {
				return fmt.Errorf("condition %s is %v", kind, condition)
			}
			return nil
		}
	}
	suite.Eventually(t, says(names.ConditionNamespaceReady))
	require.False(t, cluster.Spec.HubAcceptsClient, "nobody accepted it")

	// A person who falls for the name gives nothing away either.
	require.NoError(t, shared.accept(t.Context(), name, true))
	suite.Eventually(t, says(clusterv1.ManagedClusterConditionHubAccepted))
	require.NoError(t, shared.enable(t.Context(), client.ObjectKey{Namespace: name, Name: addOn}))
	suite.Eventually(t, func() error { return refusedOn(t.Context(), name, addOn, label) })
	agent := credentialOf(t, name, addOn)
	readsNothing(t, agent, name)
	var bound rbacv1.RoleBindingList
	require.NoError(t, shared.admin.List(t.Context(), &bound, client.InNamespace(name)))
	assert.Empty(t, bound.Items)
	suite.Eventually(t, func() error { return notWritten(t.Context(), name, addOn, label) })

	// The consent of an administrator is the label.
	namespace := &corev1.Namespace{ObjectMeta: in("", name)}
	require.NoError(t, change(namespace, `{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"argocd"}}}`)(
		t.Context(), shared.admin))
	reads(t, agent, name)
	suite.Eventually(t, func() error {
		return shared.admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "addon-" + addOn + "-deploy-0"}, &workv1.ManifestWork{})
	})
	suite.Eventually(t, func() error {
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		for _, kind := range []string{names.ConditionNamespaceReady, clusterv1.ManagedClusterConditionHubAccepted} {
			if !meta.IsStatusConditionTrue(cluster.Status.Conditions, kind) {
				return fmt.Errorf("condition %s is not true", kind)
			}
		}
		return nil
	})
	removeCluster(t, name)
}

// notWritten returns an error unless an add-on has no works, and says why.
func notWritten(ctx context.Context, cluster, addOn, says string) error {
	var written workv1.ManifestWorkList
	if err := shared.admin.List(ctx, &written, client.InNamespace(cluster)); err != nil {
		return err
	}
	var found addonv1alpha1.ManagedClusterAddOn
	if err := shared.admin.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addOn}, &found); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(found.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
	if condition == nil || !strings.Contains(condition.Message, says) || len(written.Items) > 0 {
		return fmt.Errorf("there are %d works, and condition ManifestApplied is %v", len(written.Items), condition)
	}
	return nil
}

// Shows: security/label-of-ocm
func TestANamespaceWithTheLabelOfOCMIsThatOfItsCluster(t *testing.T) {
	const name = "prepared"
	require.NoError(t, shared.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{names.LabelOCMCluster: name},
	}}))
	require.NoError(t, shared.join(t.Context(), name, "the agent of prepared"))
	suite.Eventually(t, func() error {
		var namespace corev1.Namespace
		if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
			return err
		}
		if namespace.Labels[names.LabelClusterName] != name {
			return fmt.Errorf("its labels are %v", namespace.Labels)
		}
		return nil
	})
}

// Shows: security/names-of-namespaces
func TestNobodyCreatesAClusterNamedLikeANamespaceOfTheSystem(t *testing.T) {
	for _, name := range []string{"default", "kube-flannel", "openshift", "openshift-gitops", "open-cluster-management-addons"} {
		t.Run(name, func(t *testing.T) {
			err := create(&clusterv1.ManagedCluster{ObjectMeta: in("", name)})(t.Context(), shared.clients[trusted])
			require.True(t, apierrors.IsInvalid(err), "the answer is %v", err)
			assert.Contains(t, err.Error(), "is reserved")
		})
	}
}

// Shows: security/agents-of-all-clusters
func TestTheAccountOfAddOnsBindsNoRoleToTheAgentsOfAllClusters(t *testing.T) {
	require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll(accessFile, []byte("ADDON"), []byte("single"))))
	require.NoError(t, shared.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: in("", "single-unlabelled")}))
	bind := func(namespace, cluster, group string) attempt {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "open-cluster-management:single:clusterrole:agent:x",
				Labels: map[string]string{names.LabelAddonName: "single", names.LabelAddonTemplate: ""},
			},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "single-secrets"},
		}
		if cluster != "" {
			binding.Labels[names.LabelClusterName] = cluster
		}
		return func(ctx context.Context, c client.Client) error { return c.Create(ctx, binding, client.DryRunAll) }
	}
	groups := csr.AddonGroups("cluster1", "single")
	for sentence, try := range map[string]attempt{
		"the group of all clusters":                        bind("single-shared", "", groups[1]),
		"the group of all clusters, with one named":        bind("single-shared", "cluster1", groups[1]),
		"the group of a cluster that the label omits":      bind("single-shared", "", groups[0]),
		"the group of another cluster than that named":     bind("single-shared", "cluster10", groups[0]),
		"an agent in a namespace that nobody consented to": bind("single-unlabelled", "", groups[0]),
		"an agent in the namespace of another cluster":     bind("cluster10", "cluster1", groups[0]),
	} {
		t.Run(sentence, func(t *testing.T) {
			err := try(t.Context(), shared.clients[theAddOns])
			require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
			assert.Contains(t, err.Error(), policyAddOns)
		})
	}
	require.NoError(t, bind("single-shared", "cluster1", groups[0])(t.Context(), shared.clients[theAddOns]))
}
