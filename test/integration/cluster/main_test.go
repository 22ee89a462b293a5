// Package cluster_test runs a whole agent, as the service account that manifests/ ships, and looks at what it tells the
// hub about its cluster. One control plane is hub and managed cluster at once; the part of the hub manager is played by
// the tests, so that they can also play a hub that errs.
package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// clusterName is the cluster whose agent all tests look at.
	clusterName = "c1"
	// leaseSeconds makes heartbeats frequent enough to be waited for.
	leaseSeconds = 2
	// maxClaims is how many claims are reported besides the reserved ones, reservedSuffix reserves more of them.
	maxClaims, reservedSuffix = 5, ".reserved.example.com"
)

// What the tests share.
var (
	// plane is the hub and the cluster, running is the agent of the cluster.
	plane   *suite.Plane
	running *suite.Program
	// The agent's view of its API server: sick makes /livez an error, disturb makes one request for a namespace fail,
	// blind makes all fail that read what the cluster holds, and refuse forbids to read definitions.
	sick, disturb, blind, refuse atomic.Bool
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "cluster"},
			manifests.CRDs(), manifests.SpokeCRDs(), manifests.Hub(), manifests.Klusterlet())
		// What works may apply by default would hide what the agent itself lacks.
		require.NoError(t, plane.Client.Delete(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:klusterlet-work:execution"},
		}))
		config := suite.ConfigureAgent(t, plane, plane, clusterName, names.NamespaceAgent)
		config.LeaderElect = true
		config.Claims.MaxCustom, config.Claims.ReservedSuffixes = maxClaims, []string{reservedSuffix}
		config.Gates.ClusterProperty = true
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return ailing{next} }
		running = suite.RunAgent(t, config)
		suite.Eventually(t, func() error { return accept(t.Context()) })
		suite.Admit(t, plane, clusterName)
	})
}

// ailing is the transport of the agent, for tests that make its API server look sick.
type ailing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a ailing) RoundTrip(request *http.Request) (*http.Response, error) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	path := request.URL.Path
	switch {
	case path == "/livez" && sick.Load():
		return answer(request, http.StatusInternalServerError, "etcd is not well"), nil
	case path == definitions && refuse.Load():
		return answer(request, http.StatusForbidden,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`), nil
	case strings.HasPrefix(path, "/api/v1/namespaces/managed-") && disturb.CompareAndSwap(true, false),
		blind.Load() && (path == "/api/v1/nodes" || path == "/api/v1/namespaces" || path == definitions ||
			strings.HasSuffix(path, "/clusterclaims")):
		return nil, errors.New("the test cut this connection")
	}
	return a.next.RoundTrip(request)
}

// answer holds what an API server might have answered.
func answer(request *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func accept(ctx context.Context) error {
	var cluster clusterv1.ManagedCluster
	if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
		return err
	}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, leaseSeconds
	if err := plane.Client.Update(ctx, &cluster); err != nil {
		return err
	}
	for _, object := range rights() {
		if err := plane.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return setCondition(ctx, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
}

// rights are what the hub gives an accepted cluster (docs/reference/registration.md, "Access of a cluster"), as far as
// this package needs it.
func rights() []client.Object {
	subject := []rbacv1.Subject{{
		Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: csr.ClusterGroup(clusterName),
	}}
	own := metav1.ObjectMeta{Name: "test:managedcluster:" + clusterName}
	inside := metav1.ObjectMeta{Name: own.Name, Namespace: clusterName}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	named := func(r rbacv1.PolicyRule) rbacv1.PolicyRule { r.ResourceNames = []string{clusterName}; return r }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterName}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.ClusterLease, Namespace: clusterName}},
		&rbacv1.ClusterRole{ObjectMeta: own, Rules: []rbacv1.PolicyRule{
			rule("certificates.k8s.io", "certificatesigningrequests", "create", "get", "list", "watch"),
			named(rule(clusterv1.GroupName, "managedclusters", "get", "list", "update", "watch")),
			named(rule(clusterv1.GroupName, "managedclusters/status", "patch", "update")),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: own, Subjects: subject, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own.Name,
		}},
		&rbacv1.Role{ObjectMeta: inside, Rules: []rbacv1.PolicyRule{
			rule("coordination.k8s.io", "leases", "get", "list", "watch", "update"),
			rule("addon.open-cluster-management.io", "managedclusteraddons", "get", "list", "watch"),
			rule("work.open-cluster-management.io", "manifestworks", "get", "list", "watch", "update", "patch"),
			rule("events.k8s.io", "events", "create"),
		}},
		&rbacv1.RoleBinding{ObjectMeta: inside, Subjects: subject, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: inside.Name,
		}},
	}
}

// setCondition sets a condition of the ManagedCluster as the hub manager would.
func setCondition(ctx context.Context, kind string, status metav1.ConditionStatus, reason string) error {
	var cluster clusterv1.ManagedCluster
	if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
		return err
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "by the test",
	})
	return plane.Client.Status().Update(ctx, &cluster)
}
