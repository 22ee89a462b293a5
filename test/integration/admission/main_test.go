// Package admission_test runs a default installation of the hub on a real control plane: what manifests/ ships, and the
// hub manager as its service account, without a certificate for its webhook. It writes ManagedClusters and
// ManifestWorks as users of different rights, and looks at what the hub manager says when the policies are not in
// force.
package admission_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// setLabel puts a cluster into a set.
	setLabel = "cluster.open-cluster-management.io/clusterset"
	// trustedUser is the one user whose certificate requests let new clusters in.
	trustedUser = "trusted-bootstrap@example.com"
)

// What the tests share: a control plane, the configuration of its hub manager, and the hub manager.
var (
	plane   *suite.Plane
	config  hub.Config
	manager *suite.Program
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "admission"}, manifests.CRDs(), manifests.Hub())
		config = suite.ConfigureHub(t, plane)
		config.AutoApprovedCSRUsers = []string{trustedUser}
		manager = suite.RunHub(t, config)
		plane.AwaitPolicies(t)
	})
}

func named(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func inSet(name, set string) *clusterv1.ManagedCluster {
	cluster := named(name)
	cluster.Labels = map[string]string{setLabel: set}
	return cluster
}

// as returns a client of some user.
func as(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	c := plane.As(t, name, groups...)
	return c
}

// agent returns a client of the agent of a cluster, once it may read its cluster.
func agent(t *testing.T, cluster string) client.Client {
	t.Helper()
	c := as(t, csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.ClusterGroupIAM(cluster))
	suite.Eventually(t, func() error { return c.Get(t.Context(), types.NamespacedName{Name: cluster}, named("")) })
	return c
}

// bootstrap returns a client of the ServiceAccount with which clusters join.
func bootstrap(t *testing.T) client.Client {
	t.Helper()
	return plane.Account(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
}

// user returns a client of a user who may create and change any ManagedCluster, and has the given rights besides.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test:" + name}, Rules: append([]rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"},
		Verbs: []string{"get", "create", "update", "patch", "delete"},
	}}, rules...)}
	require.NoError(t, plane.Client.Create(t.Context(), role))
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), named("known"))))
	c := as(t, name)
	// The authorizer of the API server learns of new roles by a watch.
	suite.Eventually(t, func() error { return c.Get(t.Context(), types.NamespacedName{Name: "known"}, named("")) })
	return c
}

func join(sets ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"},
		ResourceNames: sets, Verbs: []string{"create"},
	}
}

func accept(clusters ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"},
		ResourceNames: clusters, Verbs: []string{"update"},
	}
}

// create creates a cluster as an administrator, and deletes it at the end of the test.
func create(t *testing.T, cluster *clusterv1.ManagedCluster) {
	t.Helper()
	require.NoError(t, plane.Client.Create(t.Context(), cluster))
	remove(t, cluster)
}

// remove deletes a cluster at the end of a test.
func remove(t *testing.T, cluster *clusterv1.ManagedCluster) {
	t.Helper()
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(plane.Client.Delete(context.WithoutCancel(t.Context()), cluster)))
	})
}

// change changes a cluster until nobody else was faster, and returns how the last try ended.
func change(t *testing.T, c client.Client, name string, edit func(*clusterv1.ManagedCluster)) error {
	t.Helper()
	var last error
	suite.Eventually(t, func() error {
		cluster := read(t, name)
		edit(cluster)
		last = c.Update(t.Context(), cluster)
		if apierrors.IsConflict(last) {
			return last
		}
		return nil
	})
	return last
}

func read(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster clusterv1.ManagedCluster
	require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Name: name}, &cluster))
	return &cluster
}

// becomes waits until something holds of a cluster.
func becomes(t *testing.T, name string, holds func(*clusterv1.ManagedCluster) bool) {
	t.Helper()
	suite.Eventually(t, func() error {
		if cluster := read(t, name); !holds(cluster) {
			return fmt.Errorf("the cluster is %+v", cluster)
		}
		return nil
	})
}

// forbidden requires that a policy refused a write for want of a right, with these words.
func forbidden(t *testing.T, err error, policy string, says ...string) {
	t.Helper()
	refused(t, err, apierrors.IsForbidden, policy, says...)
}

// invalid requires that a policy refused a write that nobody may make, with these words.
func invalid(t *testing.T, err error, policy string, says ...string) {
	t.Helper()
	refused(t, err, apierrors.IsInvalid, policy, says...)
}

func refused(t *testing.T, err error, kind func(error) bool, policy string, says ...string) {
	t.Helper()
	require.True(t, kind(err), "%v", err)
	for _, words := range append(says, "ValidatingAdmissionPolicy '"+policy+"'") {
		require.ErrorContains(t, err, words)
	}
}
