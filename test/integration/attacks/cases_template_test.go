package attacks_test

import (
	"fmt"

	"github.com/spokelet/spokelet/csr"
)

// demand holds what a template asks for and must not get.
type demand struct {
	// registration is spec.registration of the template, as YAML in flow style.
	registration string
	// addOn is spec.addonName of the template; empty means the add-on that uses it.
	addOn string
	// says is a part of the message on the add-on.
	says string
	// refused is a part of the words with which the API server refuses the template; then the hub never sees it.
	refused string
	// signer and user are what an agent then asks for all the same; none without a signer.
	signer, user string
}

func customSigner(signer, subject string) string {
	return fmt.Sprintf("[{type: CustomSigner, customSigner: {signerName: %q, subject: {%s}, "+
		"signingCA: {name: rsa, namespace: signing}}}]", signer, subject)
}

func bindsHere(role string) string {
	return fmt.Sprintf("[{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster, "+
		"currentCluster: {clusterRoleName: %q}}]}}]", role)
}

func bindsIn(namespace, kind, role string) string {
	return fmt.Sprintf("[{type: KubeClient, kubeClient: {hubPermissions: [{type: SingleNamespace, singleNamespace: "+
		"{namespace: %q, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %q}}}]}}]", namespace, kind, role)
}

// demandsOfSigners ask for certificates of the signers of Kubernetes.
func demandsOfSigners() map[string]demand {
	const controller = "system:kube-controller-manager"
	asController := "user: " + controller + ", groups: [x]"
	all := map[string]demand{
		"the identity of kube-controller-manager": {
			registration: customSigner("kubernetes.io/kube-apiserver-client", asController), says: "belongs to Kubernetes",
			signer: "kubernetes.io/kube-apiserver-client", user: controller,
		},
		"the signer of the API server without a subject": {
			registration: customSigner("kubernetes.io/kube-apiserver-client", ""), says: "belongs to Kubernetes",
			signer: "kubernetes.io/kube-apiserver-client", user: "someone",
		},
		"the signer of the API server in another spelling": {
			registration: customSigner("Kubernetes.IO/kube-apiserver-client", asController), refused: "should match",
		},
		"the signer of the API server beside a good registration": {
			registration: "[{type: KubeClient}, " + customSigner("kubernetes.io/kube-apiserver-client", asController)[1:],
			says:         "spec.registration[1]", signer: "kubernetes.io/kube-apiserver-client", user: controller,
		},
		"the signer of the API server behind a good custom signer": {
			registration: customSigner("example.com/good", "user: good")[:len(customSigner("example.com/good", "user: good"))-1] +
				", " + customSigner("kubernetes.io/kube-apiserver-client", asController)[1:],
			says: "spec.registration[1]", signer: "kubernetes.io/kube-apiserver-client", user: controller,
		},
		"the identity of clusters over gRPC": {
			registration: customSigner("open-cluster-management.io/grpc", "user: "+csr.ClusterUser("cluster1", agentName)),
			says:         "belongs to the registration of clusters", signer: "open-cluster-management.io/grpc",
			user: csr.ClusterUser("cluster1", agentName),
		},
	}
	for _, signer := range []string{
		"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving", "kubernetes.io/legacy-unknown",
		"kubernetes.io/kube-apiserver-serving", "kubernetes.io/yet-unknown", "sub.kubernetes.io/x", "node.k8s.io/x",
	} {
		d := demand{registration: customSigner(signer, "user: \"system:node:n\", groups: [\"system:nodes\"]"),
			says: "belongs to Kubernetes"}
		if signer == "kubernetes.io/yet-unknown" || signer == "node.k8s.io/x" { // of the others the API server takes no such request
			d.signer, d.user = signer, "system:node:n"
		}
		all["a certificate of signer "+signer] = d
	}
	return all
}

// demandsOfSubjects ask a signer of their own for identities of others.
func demandsOfSubjects() map[string]demand {
	all := map[string]demand{}
	for sentence, subject := range map[string]string{
		"a controller of Kubernetes":              `user: "system:kube-controller-manager"`,
		"a node":                                  `user: "system:node:n"`,
		"a ServiceAccount":                        `user: "system:serviceaccount:kube-system:default"`,
		"the group system:masters":                `user: u, groups: ["system:masters"]`,
		"the group of all clusters":               `user: u, groups: ["` + csr.GroupManagedClusters + `"]`,
		"the group of a cluster":                  `user: u, groups: [good, "` + csr.ClusterGroup("cluster1") + `"]`,
		"the unit system:masters":                 `user: u, organizationUnit: ["system:masters"]`,
		"the agent of the cluster":                `user: "` + csr.ClusterUser("cluster1", agentName) + `"`,
		"another add-on":                          `user: "` + csr.AddonUser("cluster1", "hello", "hello-agent") + `"`,
		"the group of another add-on":             `user: u, groups: ["` + csr.AddonGroups("cluster1", "hello")[1] + `"]`,
		"an add-on on another cluster":            `user: "` + csr.AddonUser("cluster10", "hello", "hello-agent") + `"`,
		"everybody who is not even authenticated": `user: u, groups: ["system:unauthenticated"]`,
	} {
		all["from a signer of its own the identity of "+sentence] = demand{
			registration: customSigner("example.com/own", subject), says: "is not the add-on's own",
			signer: "example.com/own", user: "system:kube-controller-manager",
		}
	}
	return all
}

// demandsOfNamespaces ask for roles in namespaces that no add-on has a say in.
func demandsOfNamespaces() map[string]demand {
	all := map[string]demand{
		"the role of the hub manager in kube-system": {
			registration: bindsIn("kube-system", "ClusterRole", "open-cluster-management:spokelet-hub"),
			says:         "namespace kube-system belongs to Kubernetes",
		},
		"a consented role in the namespace of another cluster": {
			registration: bindsIn("cluster10", "ClusterRole", "hello-hub"), says: "which is the namespace of a managed cluster",
		},
		"a role where it was not granted": {
			registration: bindsIn("shared", "ClusterRole", "granted-elsewhere"), says: "may not grant rights that it does not have",
		},
	}
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease"} {
		all["a consented role in "+namespace] = demand{
			registration: bindsIn(namespace, "ClusterRole", "hello-hub"), says: "belongs to Kubernetes",
		}
	}
	all["a consented role in the namespace of the hub manager"] = demand{
		registration: bindsIn("open-cluster-management-hub", "ClusterRole", "hello-hub"), says: "belongs to the hub manager",
	}
	all["a Role of kube-system"] = demand{
		registration: bindsIn("kube-system", "Role", "extension-apiserver-authentication-reader"),
		says:         "belongs to Kubernetes",
	}
	return all
}

// demandsOfRoles ask for roles that nobody consented to, or that nobody can consent to.
func demandsOfRoles() map[string]demand {
	all := map[string]demand{
		"a Role with the name of a consented ClusterRole": {
			registration: bindsIn("shared", "Role", "hello-hub"), says: "may not grant rights that it does not have",
		},
		"a Role with the name of that of the hub manager": {
			registration: bindsIn("shared", "Role", "open-cluster-management:spokelet-hub"), says: "is never bound for an add-on",
		},
		"a role by the template of another add-on": {
			registration: bindsHere("hello-hub"), addOn: "hello", says: `.spec.addonName is "hello"`,
		},
		"a certificate by the template of another add-on": {
			registration: customSigner("example.com/rsa", "user: u"), addOn: "hello", says: `.spec.addonName is "hello"`,
			signer: "example.com/rsa", user: "u",
		},
		"a role that does not exist": {registration: bindsHere("no-such-role"), says: "create the ClusterRole"},
		"something that is no role": {
			registration: bindsIn("shared", "Secret", "hello-hub"), says: "Secret",
		},
	}
	for _, role := range []string{
		"open-cluster-management:spokelet-hub", "open-cluster-management:spokelet-hub:crds",
		"open-cluster-management:spokelet-hub:admission", "open-cluster-management:spokelet-hub:addon-bindings",
		"open-cluster-management:spokelet-hub:hub-permissions", "open-cluster-management:managedcluster:registration",
		"open-cluster-management:managedcluster:work", "open-cluster-management:managedcluster:cluster1",
		"open-cluster-management:managedcluster:cluster10", "open-cluster-management:bootstrap",
		"open-cluster-management:cluster-manager-work-executor-admin:webhook",
	} {
		all["role "+role] = demand{registration: bindsHere(role), says: "is never bound for an add-on"}
		all["role "+role+" in a namespace"] = demand{
			registration: bindsIn("shared", "ClusterRole", role), says: "is never bound for an add-on",
		}
	}
	for _, role := range []string{
		"cluster-admin", "admin", "edit", "view", "system:kube-controller-manager", "aggregated", "everything", "escalation",
		"tokens", "what-the-manager-holds", "works-everywhere", "granted-elsewhere",
	} {
		all["role "+role+" without consent"] = demand{
			registration: bindsHere(role), says: "ServiceAccount open-cluster-management-hub/addon-manager-controller-sa may not grant",
		}
	}
	return all
}
