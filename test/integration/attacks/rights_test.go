package attacks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// attempt is something that a user tries on the hub.
type attempt func(ctx context.Context, c client.Client) error

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func get(o client.Object) attempt {
	return func(ctx context.Context, c client.Client) error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) }
}

func list(o client.ObjectList, opts ...client.ListOption) attempt {
	return func(ctx context.Context, c client.Client) error { return c.List(ctx, o, opts...) }
}

func create(o client.Object) attempt {
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, o) }
}

func remove(o client.Object) attempt {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, o) }
}

// change patches an object; changeStatus its status.
func change(o client.Object, patch string) attempt {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func changeStatus(o client.Object, patch string) attempt {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// tokenOf asks for a token of a ServiceAccount.
func tokenOf(namespace, name string) attempt {
	return func(ctx context.Context, c client.Client) error {
		account := &corev1.ServiceAccount{ObjectMeta: in(namespace, name)}
		return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	}
}

// approval approves a request that is there, by a user who may not.
func approval(name, sub string) attempt {
	return func(ctx context.Context, c client.Client) error {
		request := &certificatesv1.CertificateSigningRequest{ObjectMeta: in("", name)}
		return c.SubResource(sub).Update(ctx, request)
	}
}

// inTheNamespaceOf holds what an agent must not do in the namespace of another cluster.
func inTheNamespaceOf(cluster string) map[string]attempt {
	lease, addon := coordinationv1.Lease{ObjectMeta: in(cluster, "managed-cluster-lease")}, addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, "hello")}
	work := workv1.ManifestWork{ObjectMeta: in(cluster, "addon-hello-deploy-0")}
	return map[string]attempt{
		"reads a Secret":                              get(&corev1.Secret{ObjectMeta: in(cluster, "any")}),
		"lists Secrets":                               list(&corev1.SecretList{}, client.InNamespace(cluster)),
		"reads a ConfigMap":                           get(&corev1.ConfigMap{ObjectMeta: in(cluster, "any")}),
		"reads the heartbeat":                         get(lease.DeepCopy()),
		"lists leases":                                list(&coordinationv1.LeaseList{}, client.InNamespace(cluster)),
		"changes the heartbeat":                       change(lease.DeepCopy(), `{"spec":{"holderIdentity":"me"}}`),
		"creates a lease":                             create(&coordinationv1.Lease{ObjectMeta: in(cluster, "hello")}),
		"reads an add-on":                             get(addon.DeepCopy()),
		"lists add-ons":                               list(&addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster)),
		"changes an add-on":                           change(addon.DeepCopy(), `{"metadata":{"annotations":{"a":"b"}}}`),
		"changes the status of an add-on":             changeStatus(addon.DeepCopy(), `{"status":{"namespace":"other"}}`),
		"deletes an add-on":                           remove(addon.DeepCopy()),
		"reads a work":                                get(work.DeepCopy()),
		"lists works":                                 list(&workv1.ManifestWorkList{}, client.InNamespace(cluster)),
		"changes a work":                              change(work.DeepCopy(), `{"metadata":{"annotations":{"a":"b"}}}`),
		"changes the status of a work":                changeStatus(work.DeepCopy(), `{"status":{"conditions":[]}}`),
		"creates a work":                              create(&workv1.ManifestWork{ObjectMeta: in(cluster, "mine")}),
		"deletes a work":                              remove(work.DeepCopy()),
		"creates an Event":                            create(&corev1.Event{ObjectMeta: in(cluster, "mine")}),
		"takes a token of the add-on":                 tokenOf(cluster, "hello-agent"),
		"takes a token of the default ServiceAccount": tokenOf(cluster, "default"),
		"creates a ServiceAccount":                    create(&corev1.ServiceAccount{ObjectMeta: in(cluster, "mine")}),
		"creates a RoleBinding": create(&rbacv1.RoleBinding{ObjectMeta: in(cluster, "mine"),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}}),
	}
}

// onTheHub holds what an agent must not do outside of namespaces.
func onTheHub() map[string]attempt {
	other := clusterv1.ManagedCluster{ObjectMeta: in("", "cluster1")}
	own := clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}
	return map[string]attempt{
		"reads another ManagedCluster":                  get(other.DeepCopy()),
		"lists all ManagedClusters":                     list(&clusterv1.ManagedClusterList{}),
		"changes another ManagedCluster":                change(other.DeepCopy(), `{"spec":{"leaseDurationSeconds":1}}`),
		"changes the status of another ManagedCluster":  changeStatus(other.DeepCopy(), `{"status":{"conditions":[]}}`),
		"creates a ManagedCluster":                      create(newCluster("mine")),
		"deletes another ManagedCluster":                remove(other.DeepCopy()),
		"deletes its own ManagedCluster":                remove(own.DeepCopy()),
		"approves a certificate request":                approval("any", "approval"),
		"writes a certificate into a request":           approval("any", "status"),
		"deletes a certificate request":                 remove(&certificatesv1.CertificateSigningRequest{ObjectMeta: in("", "any")}),
		"changes a certificate request":                 change(&certificatesv1.CertificateSigningRequest{ObjectMeta: in("", "any")}, `{"metadata":{"labels":{"a":"b"}}}`),
		"reads the CA of a custom signer":               get(&corev1.Secret{ObjectMeta: in("signing", "rsa")}),
		"takes a token of the hub manager":              tokenOf("open-cluster-management-hub", "addon-manager-controller-sa"),
		"takes a token of the bootstrap ServiceAccount": tokenOf("open-cluster-management", "agent-registration-bootstrap"),
		"changes a template":                            change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", "hello")}, `{"metadata":{"annotations":{"a":"b"}}}`),
		"changes the definition of an add-on":           change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", "hello")}, `{"metadata":{"annotations":{"a":"b"}}}`),
		"changes its own ClusterRole": change(&rbacv1.ClusterRole{ObjectMeta: in("", "open-cluster-management:managedcluster:cluster10")},
			`{"rules":[]}`),
		"creates a ClusterRoleBinding": create(&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "mine"),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}),
		"writes an Event where those about requests are": create(&corev1.Event{ObjectMeta: in("default", "mine")}),
	}
}

// Shows: registration/nothing-of-other-clusters
func TestAnAgentReachesNothingOfAnotherCluster(t *testing.T) {
	for _, attacker := range []who{agent10, denied, gone, hello1} {
		victim := map[who]string{hello1: "cluster10"}[attacker]
		if victim == "" {
			victim = "cluster1"
		}
		for _, table := range []map[string]attempt{inTheNamespaceOf(victim), onTheHub()} {
			for sentence, try := range table {
				t.Run(fmt.Sprintf("%s %s", attacker, sentence), func(t *testing.T) {
					err := try(t.Context(), shared.clients[attacker])
					assert.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
				})
			}
		}
	}
	t.Run("while in its own namespace it does its work", func(t *testing.T) {
		for sentence, try := range map[string]attempt{
			"reads its add-on":  get(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster10", "hello")}),
			"lists its works":   list(&workv1.ManifestWorkList{}, client.InNamespace("cluster10")),
			"reads its cluster": get(&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}),
		} {
			assert.NoError(t, try(t.Context(), shared.clients[agent10]), sentence)
		}
	})
}

func TestAnAgentCannotPassAsAnother(t *testing.T) {
	for name, as := range map[string]rest.ImpersonationConfig{
		"the agent of cluster1":         {UserName: csr.ClusterUser("cluster1", agentName)},
		"the group of cluster1":         {UserName: csr.ClusterUser("cluster10", agentName), Groups: []string{csr.ClusterGroup("cluster1")}},
		"an administrator":              {UserName: "admin", Groups: []string{"system:masters"}},
		"a ServiceAccount of an add-on": {UserName: "system:serviceaccount:cluster1:hello-agent"},
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.CopyConfig(shared.configs[agent10])
			config.Impersonate = as
			c, err := client.New(config, client.Options{Scheme: shared.scheme})
			if err == nil {
				err = get(&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster1")})(t.Context(), c)
			}
			assert.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
		})
	}
}

// TestNoRightsFollowFromAStatusThatAnAgentWrote lets the agent of cluster10 write into the status of its own add-on who
// it would like to be.
func TestNoRightsFollowFromAStatusThatAnAgentWrote(t *testing.T) {
	for name, wish := range map[string]struct {
		user   string
		groups []string
	}{
		"an administrator":   {"kubernetes-admin", []string{"system:masters"}},
		"another cluster":    {csr.ClusterUser("cluster1", agentName), []string{csr.ClusterGroup("cluster1")}},
		"everybody":          {"system:anonymous", []string{"system:unauthenticated", "system:serviceaccounts"}},
		"the same elsewhere": {csr.AddonUser("cluster1", "hello", "hello-agent"), csr.AddonGroups("cluster1", "hello")},
	} {
		t.Run(name, func(t *testing.T) {
			addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster10", "hello")}
			require.NoError(t, get(addon)(t.Context(), shared.clients[agent10]))
			before := addon.DeepCopy()
			require.NotEmpty(t, addon.Status.Registrations)
			addon.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Subject:    addonv1alpha1.Subject{User: wish.user, Groups: wish.groups},
			}}
			require.NoError(t, shared.clients[agent10].Status().Patch(t.Context(), addon, client.MergeFrom(before)))

			// The hub takes it back, so it has seen it.
			suite.Eventually(t, func() error { return registered(t.Context(), before) })
			assertBoundToNobodyElse(t)
			asks := forAddon("cluster10", "hello", kube)
			asks.User, asks.Groups = wish.user, wish.groups
			if name == "an administrator" {
				asks.Groups = nil // The API server does not even take it with that group.
			}
			s := &sent{forgery{rules: rules(approve.ReasonSubjectNotExpected)}, forgery{asks: asks}.build(t)}
			require.NoError(t, shared.clients[agent10].Create(t.Context(), s.request))
			deleteAfterwards(t, s.request)
			suite.Eventually(t, func() error { return told(t.Context(), s) })
			assertNotPassed(t, s)
		})
	}
}

// registered reports whether the registrations of an add-on are as they were.
func registered(ctx context.Context, before *addonv1alpha1.ManagedClusterAddOn) error {
	var now addonv1alpha1.ManagedClusterAddOn
	if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(before), &now); err != nil {
		return err
	}
	if !assert.ObjectsAreEqual(before.Status.Registrations, now.Status.Registrations) {
		return fmt.Errorf("the registrations are %v", now.Status.Registrations)
	}
	return nil
}

// assertBoundToNobodyElse checks that the role of the add-on is bound to the group of the add-on on its cluster only.
func assertBoundToNobodyElse(t *testing.T) {
	t.Helper()
	var bindings rbacv1.RoleBindingList
	require.NoError(t, shared.admin.List(t.Context(), &bindings))
	found := 0
	for _, binding := range bindings.Items {
		if addOn := binding.Labels[names.LabelAddonName]; binding.RoleRef.Name != "hello-hub" || binding.Name == "of-somebody" ||
			(addOn != "" && addOn != "hello") { // of other tests
			continue
		}
		found++
		assert.Equal(t, []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups(binding.Namespace, "hello")[0],
		}}, binding.Subjects)
	}
	assert.NotZero(t, found)
	var everywhere rbacv1.ClusterRoleBindingList
	require.NoError(t, shared.admin.List(t.Context(), &everywhere))
	for _, binding := range everywhere.Items {
		if binding.Name != "addon-manager-hello-hub" { // the consent of the administrator
			assert.NotEqual(t, "hello-hub", binding.RoleRef.Name)
		}
	}
}
