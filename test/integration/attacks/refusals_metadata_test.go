package attacks_test

import (
	"context"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stretchr/testify/require"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	policyClusters   = "hub-manager-clusters.spokelet.io"
	policySets       = "hub-manager-sets.spokelet.io"
	policyWorkOwners = "manifestwork-owners.spokelet.io"
)

// Writes of metadata and of statuses that pass for those of the hub manager, and that lead to deletions and rights.
//
// Shows: security/hub-manager-token-writes
func TestTheTokenOfTheHubManagerChangesNothingThatDecidesForOthers(t *testing.T) {
	createPrecious(t)
	refuse(t, misusesOfAcceptance(), misusesOfLabelsOfRoles(), misusesOfMetadataOfRequests(), misusesOfNewNamespaces())
}

// Shows: security/sets-of-every-hub
func TestTheTokenOfTheHubManagerKeepsTheSetsOfEveryHubOnly(t *testing.T) {
	set := func(name string) *clusterv1beta2.ManagedClusterSet {
		return &clusterv1beta2.ManagedClusterSet{ObjectMeta: in("", name)}
	}
	// The sets of users, and the deletion of any, are a matter of RBAC.
	all := map[string]misuse{
		"changes a set of users": {theManager, change(set("blue"), orphaning), ""},
		"deletes a set":          {theManager, remove(set(clustersets.Global)), ""},
	}
	for sentence, patch := range map[string]string{
		"has a set deleted":                       orphaning,
		"keeps a set from being deleted":          `{"metadata":{"finalizers":["a.b/c"]}}`,
		"leaves a set to its users":               `{"metadata":{"annotations":{"cluster.open-cluster-management.io/autoupdate":"false"}}}`,
		"labels a set":                            `{"metadata":{"labels":{"a":"b"}}}`,
		"has a set make a namespace":              `{"spec":{"managedNamespaces":[{"name":"kube-system"}]}}`,
		"has a set select some of its clusters":   `{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"b"}}}}}`,
		"has a set select no cluster":             `{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":null}}}`,
		"has a set select what has an expression": `{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}}}`,
	} {
		for _, name := range []string{clustersets.Default, clustersets.Global} {
			all[sentence+": "+name] = misuse{theManager, change(set(name), patch), policySets}
		}
	}
	all["has the set of the others select all"] = misuse{
		theManager, change(set(clustersets.Default), `{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{}}}}`), policySets,
	}
	all["has the set of all select the others"] = misuse{
		theManager, change(set(clustersets.Global), `{"spec":{"clusterSelector":{"selectorType":"ExclusiveClusterSetLabel","labelSelector":null}}}`), policySets,
	}
	refuse(t, all)
}

func misusesOfAcceptance() map[string]misuse {
	all := map[string]misuse{
		"forgets that a cluster was accepted, by its conditions": {
			theManager, changeStatus(newCluster("cluster1"), `{"status":{"conditions":null}}`), policyClusters,
		},
	}
	for sentence, patch := range map[string]string{
		"denies a cluster":                     `{"spec":{"hubAcceptsClient":false}}`,
		"forgets that a cluster was accepted":  `{"metadata":{"annotations":{"` + names.AnnotationAcceptedOn + `":null}}}`,
		"changes when a cluster was accepted":  `{"metadata":{"annotations":{"` + names.AnnotationAcceptedOn + `":""}}}`,
		"denies a cluster, and forgets it all": `{"spec":{"hubAcceptsClient":false},"metadata":{"annotations":null}}`,
		"confirms an eviction":                 `{"metadata":{"annotations":{"` + names.AnnotationConfirmEviction + `":"0123456789ab"}}}`,
		"confirms an eviction without a value": `{"metadata":{"annotations":{"` + names.AnnotationConfirmEviction + `":""}}}`,
	} {
		all[sentence] = misuse{theManager, change(newCluster("cluster1"), patch), policyClusters}
	}
	return all
}

func misusesOfLabelsOfRoles() map[string]misuse {
	role := func(labels map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: names.RolePrefixCluster + "x", Labels: labels},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get"},
			}},
		}
	}
	work := &rbacv1.ClusterRole{ObjectMeta: in("", names.RolePrefixCluster+"work")}
	all := map[string]misuse{
		"binds the works of a namespace that is no cluster's": {theManager, create(&rbacv1.RoleBinding{
			ObjectMeta: in(precious, names.RolePrefixCluster+precious+":work"), Subjects: groupSubjects(csr.ClusterGroup(precious)),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: work.Name},
		}), policyRoles},
		"binds a role of an add-on to an account of kube-system": {theAddOns, ofAddOn("signing", func(b *rbacv1.RoleBinding) {
			b.Labels[names.LabelClusterName] = "kube-system"
			b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "misused-agent"}}
		}), policyAddOns},
	}
	for sentence, label := range map[string]string{
		"with everybody who may view": "rbac.authorization.k8s.io/aggregate-to-view",
		"with templates of add-ons":   "addon.spokelet.io/hub-permission",
	} {
		all["shares a role of its own "+sentence] = misuse{theManager, create(role(map[string]string{label: "true"})), policyRoles}
		all["shares the role of works "+sentence] = misuse{
			theManager, change(work, `{"metadata":{"labels":{"`+label+`":"true"}}}`), policyRoles,
		}
	}
	all["gives its role the label of another cluster"] = misuse{
		theManager, create(role(map[string]string{names.LabelClusterName: "cluster1"})), policyRoles,
	}
	return all
}

func misusesOfMetadataOfRequests() map[string]misuse {
	all := map[string]misuse{}
	for _, sub := range []string{"approval", "status"} {
		for sentence, spoil := range map[string]func(*certificatesv1.CertificateSigningRequest){
			"labels a request of others": func(r *certificatesv1.CertificateSigningRequest) {
				r.Labels = map[string]string{names.LabelClusterName: "cluster1"}
			},
			"has a request of others deleted by an owner": func(r *certificatesv1.CertificateSigningRequest) {
				r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "0"}}
			},
			"keeps a request of others from being deleted": func(r *certificatesv1.CertificateSigningRequest) {
				r.Finalizers = []string{"a.b/c"}
			},
		} {
			all[sentence+", by its "+sub] = misuse{theManager, func(ctx context.Context, c client.Client) error {
				var fresh certificatesv1.CertificateSigningRequest
				if err := c.Get(ctx, client.ObjectKey{Name: "precious"}, &fresh); err != nil {
					return err
				}
				spoil(&fresh)
				return c.SubResource(sub).Update(ctx, &fresh)
			}, policyRequests}
		}
	}
	return all
}

func misusesOfNewNamespaces() map[string]misuse {
	all := map[string]misuse{}
	for _, name := range []string{"openshift-config", "kube-flannel", "open-cluster-management-agent"} {
		all["creates namespace "+name] = misuse{theManager, create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{names.LabelClusterName: name},
		}}), policyNamespaces}
	}
	all["creates a namespace with privileged pods"] = misuse{theManager, create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "newly", Labels: map[string]string{names.LabelClusterName: "newly", "pod-security.kubernetes.io/enforce": "privileged"},
	}}), policyNamespaces}
	return all
}

// authorOfWorks returns the client of a user who has these verbs on the ManifestWorks of a namespace, and no other right.
func authorOfWorks(t *testing.T, namespace string, verbs ...string) client.Client {
	t.Helper()
	const user = "patcher@example.com"
	createForTest(t, &rbacv1.Role{ObjectMeta: in(namespace, "patcher"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: verbs,
	}}})
	createForTest(t, &rbacv1.RoleBinding{
		ObjectMeta: in(namespace, "patcher"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "patcher"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config, err := shared.plane.User(user)
	require.NoError(t, err)
	author, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)
	return author
}

// An author who may change a work, and not delete it, cannot have it deleted by an owner that does not exist.
func TestAnAuthorCannotHaveAWorkDeletedByAnOwner(t *testing.T) {
	author := authorOfWorks(t, "cluster1", "get", "update", "patch")
	work := &workv1.ManifestWork{ObjectMeta: in("cluster1", "handed-over")}
	createForTest(t, work)
	require.NoError(t, poll(t.Context(), func(ctx context.Context) error { return get(work.DeepCopy())(ctx, author) }))
	dry := client.NewDryRunClient(author)
	require.ErrorContains(t, change(work.DeepCopy(), orphaning)(t.Context(), dry), policyWorkOwners)
	require.NoError(t, change(work.DeepCopy(), `{"metadata":{"labels":{"a":"b"}}}`)(t.Context(), dry))
	require.NoError(t, change(work.DeepCopy(), orphaning)(t.Context(), client.NewDryRunClient(shared.admin)))
}
