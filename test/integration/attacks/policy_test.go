package attacks_test

import (
	"context"
	"crypto/elliptic"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// misuse is something that the token of the hub manager must be of no use for.
type misuse struct {
	as  who
	try attempt
	// by is the policy that refuses it; empty means that RBAC does. Where several do, joined by orElse, any may answer.
	by string
}

// orElse stands between policies that all refuse the same.
const orElse = " or "

const (
	policyRequests      = "hub-manager-requests.spokelet.io"
	policyRegistrations = "hub-manager-registrations.spokelet.io"
	policyAddOns        = "hub-manager-addon-bindings.spokelet.io"
	policyRoles         = "hub-manager-roles.spokelet.io"
	policyNamespaces    = "hub-manager-namespaces.spokelet.io"
	policyTokens        = "hub-manager-tokens.spokelet.io"
)

func TestTheTokenOfTheHubManagerIsOfNoFurtherUse(t *testing.T) {
	require.NoError(t, shared.plane.Apply(t.Context(), roles))
	refuse(t, misusesOfRequests(t), misusesOfRegistrations(), misusesOfAddOnBindings(), misusesOfRoles(), misusesOfTheRest())
}

// refuse tries everything in the tables, each without effect. The policy that a misuse names must refuse it.
func refuse(t *testing.T, tables ...map[string]misuse) {
	t.Helper()
	tried, passed := 0, 0
	for _, table := range tables {
		for sentence, m := range table {
			tried++
			if !t.Run(sentence, func(t *testing.T) {
				err := m.try(t.Context(), client.NewDryRunClient(shared.clients[m.as]))
				require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
				if m.by == "" {
					assert.NotContains(t, err.Error(), "ValidatingAdmissionPolicy")
					return
				}
				assert.True(t, slices.ContainsFunc(strings.Split(m.by, orElse), func(policy string) bool {
					return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy)
				}), "%s refuses it, and not %v", m.by, err)
			}) {
				passed++
			}
		}
	}
	t.Logf("%d attacks were tried, %d passed", tried, passed)
}

// approves tries to approve a request.
func approves(request *certificatesv1.CertificateSigningRequest) attempt {
	return func(ctx context.Context, c client.Client) error {
		approved := request.DeepCopy()
		approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Misuse",
		}}
		return c.SubResource("approval").Update(ctx, approved)
	}
}

// signs tries to store a certificate in a request.
func signs(request *certificatesv1.CertificateSigningRequest) attempt {
	return func(ctx context.Context, c client.Client) error {
		signed := request.DeepCopy()
		signed.Status.Certificate = shared.configs[agent1].CertData
		return c.SubResource("status").Update(ctx, signed)
	}
}

func misusesOfRequests(t *testing.T) map[string]misuse {
	t.Helper()
	// ask has a user ask, as nobody honest would; the hub manager in this process leaves it alone.
	ask := func(as who, asks csr.Request, object func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		return post(t, forgery{as: as, asks: asks, object: object}).request
	}
	ofHello := forAddon("cluster1", "hello", kube)
	unlabelled := func(r *certificatesv1.CertificateSigningRequest) { r.Labels = nil }
	server := func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
	}
	with := func(signer string) csr.Request {
		asks := ofHello
		asks.Signer = signer
		return asks
	}
	mine := forgery{asks: csr.ForCluster("cluster1", agentName), key: ecdsaKey(elliptic.P256())}.build(t)
	all := map[string]misuse{
		"asks for a certificate itself": {theManager, create(mine), policyRequests},
		"approves a request without the label of a cluster": {
			theManager, approves(ask(agent10, ofHello, unlabelled)), policyRequests,
		},
		"approves the credential of an add-on for the agent of another cluster": {
			theManager, approves(ask(agent10, ofHello, nil)), policyRequests,
		},
		"approves the credential of an add-on for the bootstrap identity": {
			theManager, approves(ask(bootstrap, ofHello, nil)), policyRequests,
		},
		"approves the credential of a cluster for the agent of another": {
			theManager, approves(ask(agent10, csr.ForCluster("cluster1", agentName), nil)), policyRequests,
		},
		"approves a certificate of a server": {theManager, approves(ask(agent1, with("example.com/rsa"), server)), policyRequests},
		"signs for the API server of the hub": {
			theManager, signs(ask(agent10, ofHello, nil)), policyRequests,
		},
	}
	for _, signer := range []string{"kubernetes.io/yet-unknown", "sub.kubernetes.io/x", "node.k8s.io/x", "open-cluster-management.io/grpc"} {
		request := ask(agent1, with(signer), nil)
		all["approves for "+signer] = misuse{theManager, approves(request), policyRequests}
		all["signs for "+signer] = misuse{theManager, signs(request), policyRequests}
	}
	return all
}

func misusesOfRegistrations() map[string]misuse {
	alpha := func(signer, user string, groups ...string) attempt {
		return func(ctx context.Context, c client.Client) error {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")}
			if err := c.Get(ctx, client.ObjectKeyFromObject(addOn), addOn); err != nil {
				return err
			}
			before := addOn.DeepCopy()
			addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
				SignerName: signer, Subject: addonv1alpha1.Subject{User: user, Groups: groups},
			}}
			return c.Status().Patch(ctx, addOn, client.MergeFrom(before))
		}
	}
	const hub = certificatesv1.KubeAPIServerClientSignerName
	own := csr.AddonUser("cluster1", "hello", "hello-agent")
	all := map[string]misuse{}
	for sentence, try := range map[string]attempt{
		"as a controller of Kubernetes":    alpha(hub, "system:kube-controller-manager"),
		"as an administrator":              alpha(hub, "kubernetes-admin", "system:masters"),
		"as another add-on":                alpha(hub, csr.AddonUser("cluster1", "vault", "vault-agent")),
		"as the add-on on another cluster": alpha(hub, csr.AddonUser("cluster10", "hello", "hello-agent")),
		"as the agent of the cluster":      alpha(hub, csr.ClusterUser("cluster1", agentName)),
		"in the group of a cluster":        alpha(hub, own, csr.ClusterGroup("cluster1")),
		"in the group of another add-on":   alpha(hub, own, csr.AddonGroups("cluster1", "vault")...),
		"by another signer of Kubernetes":  alpha("kubernetes.io/kubelet-serving", "u"),
		"by the signer of gRPC":            alpha("open-cluster-management.io/grpc", "u"),
	} {
		all["has an add-on register "+sentence] = misuse{theManager, try, policyRegistrations}
	}
	return all
}

// ofAddOn is a RoleBinding as those of add-ons are, changed by a function.
func ofAddOn(namespace string, spoil func(*rbacv1.RoleBinding)) attempt {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "open-cluster-management:misused:clusterrole:agent",
			Labels: map[string]string{
				names.LabelAddonName: "misused", names.LabelAddonTemplate: "", names.LabelClusterName: "x",
			},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hello-hub"},
		Subjects: groupSubjects(csr.AddonGroups("x", "misused")[0]),
	}
	if namespace == "cluster1" {
		binding.Subjects = groupSubjects(csr.AddonGroups("cluster1", "misused")[0])
	}
	spoil(binding)
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, binding.DeepCopy()) }
}

func groupSubjects(groups ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, group := range groups {
		all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return all
}

func misusesOfAddOnBindings() map[string]misuse {
	nothing := func(*rbacv1.RoleBinding) {}
	role := func(name string) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.RoleRef.Name = name }
	}
	to := func(subjects ...rbacv1.Subject) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Subjects = subjects }
	}
	all := map[string]misuse{
		"reads a Secret as the account of add-ons that nobody granted": {theAddOns, get(&corev1.Secret{ObjectMeta: in("shared", "any")}), ""},
		"binds a role that nobody granted":                             {theAddOns, ofAddOn("shared", role("everything")), ""},
		"binds what only the hub manager holds":                        {theAddOns, ofAddOn("shared", role("what-the-manager-holds")), ""},
		"creates what it may hand on":                                  {theAddOns, create(&corev1.ConfigMap{ObjectMeta: in("shared", "x")}), ""},
		"changes a binding that hands out more than was granted": {
			theAddOns, change(&rbacv1.RoleBinding{ObjectMeta: in("cluster1", "test:fleet-admin")}, `{"metadata":{"labels":{"a":"b"}}}`), "",
		},
		"deletes a binding that is not one of an add-on": {
			theAddOns, remove(&rbacv1.RoleBinding{ObjectMeta: in("cluster1", "test:fleet-admin")}), policyAddOns,
		},
		"changes a binding that is not one of an add-on": {
			theAddOns, change(&rbacv1.RoleBinding{ObjectMeta: in("shared", "of-somebody")}, `{"metadata":{"labels":{"a":"b"}}}`),
			policyAddOns,
		},
	}
	for sentence, spoil := range map[string]func(*rbacv1.RoleBinding){
		"without the label of an add-on": func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddonName) },
		"without the label of templates": func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddonTemplate) },
		"under the name of another":      func(b *rbacv1.RoleBinding) { b.Name = "open-cluster-management:hello:role:agent" },
		"of its role for consents":       role("open-cluster-management:spokelet-hub:hub-permissions"),
		"of a role of clusters":          role("open-cluster-management:managedcluster:work"),
		"of the role to join":            role("open-cluster-management:bootstrap"),
		"to everybody":                   to(groupSubjects("system:authenticated")...),
		"to all clusters":                to(groupSubjects(csr.GroupManagedClusters)...),
		"to another add-on":              to(groupSubjects(csr.AddonGroups("x", "hello")[1])...),
		"to a user":                      to(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}),
		"to any ServiceAccount":          to(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "shared", Name: "default"}),
		"to a ServiceAccount of no cluster": to(
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: "shared", Name: "misused-agent"}),
	} {
		all["writes a binding "+sentence] = misuse{theAddOns, ofAddOn("shared", spoil), policyAddOns}
	}
	all["lets all clusters into the namespace of one"] = misuse{
		theAddOns, ofAddOn("cluster1", to(groupSubjects(csr.AddonGroups("x", "misused")[1])...)), policyAddOns,
	}
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "open-cluster-management-hub"} {
		all["writes a binding in "+namespace] = misuse{theAddOns, ofAddOn(namespace, nothing), policyAddOns}
	}
	return all
}

func misusesOfRoles() map[string]misuse {
	const prefix = "open-cluster-management:managedcluster:"
	ref := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	own := rbacv1.PolicyRule{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get"}}
	clusterRole := func(name string, rules ...rbacv1.PolicyRule) attempt {
		return create(&rbacv1.ClusterRole{ObjectMeta: in("", name), Rules: rules})
	}
	clusterBinding := func(name, role string, groups ...string) attempt {
		return create(&rbacv1.ClusterRoleBinding{ObjectMeta: in("", name), RoleRef: ref(role), Subjects: groupSubjects(groups...)})
	}
	binding := func(namespace, name, role string, groups ...string) attempt {
		return create(&rbacv1.RoleBinding{ObjectMeta: in(namespace, name), RoleRef: ref(role), Subjects: groupSubjects(groups...)})
	}
	all := map[string]misuse{}
	for sentence, try := range map[string]attempt{
		"a ClusterRole of any name":                    clusterRole("mine", own),
		"a ClusterRole of a cluster over all clusters": clusterRole(prefix+"x", own),
		"a ClusterRole of a cluster to approve requests": clusterRole(prefix+"x", rbacv1.PolicyRule{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve"}}),
		"a ClusterRole of a cluster to accept clusters": clusterRole(prefix+"x", rbacv1.PolicyRule{
			APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"}, Verbs: []string{"update"}}),
		"a ClusterRole over tokens": clusterRole(prefix+"work", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}),
		"a ClusterRole for all clusters":            clusterRole(prefix + "managed-clusters"),
		"a ClusterRoleBinding of any name":          clusterBinding("mine", prefix+"cluster1", csr.ClusterGroup("cluster1")),
		"a ClusterRoleBinding of its own role":      clusterBinding(prefix+"x", "open-cluster-management:spokelet-hub", csr.ClusterGroup("x")),
		"a ClusterRoleBinding to another cluster":   clusterBinding(prefix+"cluster10", prefix+"cluster10", csr.ClusterGroup("cluster1")),
		"a ClusterRoleBinding to all clusters":      clusterBinding(prefix+"managed-clusters", prefix+"managed-clusters", csr.GroupManagedClusters),
		"a ClusterRoleBinding of the role of works": clusterBinding(prefix+"work", prefix+"work", csr.ClusterGroup("work")),
		"a RoleBinding in kube-system":              binding("kube-system", prefix+"kube-system:work", prefix+"work", csr.ClusterGroup("kube-system")),
		"a RoleBinding in its own namespace":        binding(names.NamespaceHub, prefix+names.NamespaceHub+":work", prefix+"work", csr.ClusterGroup(names.NamespaceHub)),
		"a RoleBinding of any name":                 binding("cluster1", "mine", prefix+"work", csr.ClusterGroup("cluster1")),
		"a RoleBinding to another cluster":          binding("cluster1", prefix+"cluster1:work", prefix+"work", csr.ClusterGroup("cluster10")),
		"a RoleBinding of another role":             binding("cluster1", prefix+"cluster1:work", "open-cluster-management:spokelet-hub", csr.ClusterGroup("cluster1")),
		"a RoleBinding of an add-on under its own name": binding("cluster1", "open-cluster-management:hello:clusterrole:x",
			"open-cluster-management:managedcluster:work", csr.AddonGroups("cluster1", "hello")[0]),
		"a Role of any name": create(&rbacv1.Role{ObjectMeta: in("cluster1", "mine"), Rules: []rbacv1.PolicyRule{own}}),
	} {
		all["writes "+sentence] = misuse{theManager, try, policyRoles}
	}
	all["writes a ClusterRole of all clusters to write any lease"] = misuse{theManager,
		clusterRole(prefix+"registration", rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}}), ""}
	return all
}

func misusesOfTheRest() map[string]misuse {
	return map[string]misuse{
		"takes a token of its own account": {theManager, tokenOf(names.NamespaceHub, names.ServiceAccountManager), policyTokens},
		"takes a token of a controller":    {theManager, tokenOf("kube-system", "clusterrole-aggregation-controller"), policyTokens},
		"takes a token in a cluster":       {theManager, tokenOf("cluster1", "default"), policyTokens},
		"makes kube-system that of a cluster": {theManager,
			change(&corev1.Namespace{ObjectMeta: in("", "kube-system")}, `{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"kube-system"}}}`),
			policyNamespaces},
		"makes a namespace that of another cluster": {theManager,
			change(&corev1.Namespace{ObjectMeta: in("", "shared")}, `{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"cluster1"}}}`),
			policyNamespaces},
		"loosens the security of pods in a namespace": {theManager,
			change(&corev1.Namespace{ObjectMeta: in("", "cluster1")}, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`),
			policyNamespaces},
		"reads Secrets":              {theManager, list(&corev1.SecretList{}), ""},
		"reads a CA itself":          {theManager, get(&corev1.Secret{ObjectMeta: in("signing", "rsa")}), ""},
		"reads ConfigMaps":           {theManager, list(&corev1.ConfigMapList{}), ""},
		"creates a pod":              {theManager, create(&corev1.Pod{ObjectMeta: in(names.NamespaceHub, "x")}), ""},
		"creates a ManagedCluster":   {theManager, create(newCluster("mine")), ""},
		"changes a policy":           {theManager, remove(policyObject(policyRequests)), ""},
		"changes a template":         {theManager, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", "hello")}, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		"defines an add-on":          {theManager, create(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", "mine")}), ""},
		"labels a role as consented": {theManager, change(&rbacv1.ClusterRole{ObjectMeta: in("", "everything")}, `{"metadata":{"labels":{"addon.spokelet.io/hub-permission":"true"}}}`), ""},
	}
}

func policyObject(name string) client.Object {
	u := &metav1.PartialObjectMetadata{ObjectMeta: in("", name)}
	u.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))
	u.APIVersion = "admissionregistration.k8s.io/v1"
	return u
}

// TestTheHubManagerPassesAsNobodyElse has its token impersonate others than the account of add-ons.
func TestTheHubManagerPassesAsNobodyElse(t *testing.T) {
	for _, user := range []string{
		"system:serviceaccount:kube-system:default", "system:serviceaccount:" + names.NamespaceHub + ":default",
		"system:kube-controller-manager", csr.ClusterUser("cluster1", agentName), "admin",
	} {
		config := *shared.configs[theManager]
		config.Impersonate.UserName = user
		c, err := client.New(&config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
		if err == nil {
			err = c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
		}
		assert.True(t, apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate"), "as %s: %v", user, err)
	}
}
