// Package cluster_test runs a whole agent, as the service account that manifests/ ships, and looks at what it tells the
// hub about its cluster. One control plane is hub and managed cluster at once; the part of the hub manager is played by
// the tests, so that they can also play a hub that errs.
package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// clusterName is the cluster whose agent all tests look at.
	clusterName = "c1"
	// leaseSeconds makes heartbeats frequent enough to be waited for.
	leaseSeconds = 2
	// maxClaims is how many claims are reported besides the reserved ones, reservedSuffix reserves more of them.
	maxClaims, reservedSuffix = 5, ".reserved.example.com"
	// patience is how long anything may take, tick how often it is looked at.
	patience, tick = 30 * time.Second, 50 * time.Millisecond
)

// shared is the control plane with the agent that all tests of the package use.
var shared struct {
	plane *sandbox.ControlPlane
	admin client.Client
	kube  kubernetes.Interface
	// config is what the agent runs with.
	config agent.Config
	// run is the context of the agent, stop ends it and waits for its end.
	run  context.Context //nolint:containedctx // the agent outlives each test
	stop func()
	// ended receives what agent.Run returned.
	ended chan error
	// The agent's view of its API server: sick makes /livez an error, disturb makes one request for a namespace fail,
	// blind makes all fail that read what the cluster holds, and refuse forbids to read definitions.
	sick, disturb, blind, refuse atomic.Bool
}

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, start)) }

func start(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "cluster"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	if err := prepare(ctx, plane); err != nil {
		return plane.Stop, err
	}
	dir, err := os.MkdirTemp("", "spokelet-cluster-")
	if err != nil {
		return plane.Stop, err
	}
	stop := func() { plane.Stop(); _ = os.RemoveAll(dir) }
	if err := configure(ctx, plane, dir); err != nil {
		return stop, err
	}
	shared.run = ctx //nolint:fatcontext // once, for all tests
	shared.stop = startAgent(ctx)
	return func() { shared.stop(); stop() }, join(ctx)
}

// prepare installs what is shipped, makes clients, and gives clusters their rights as the hub manager would.
func prepare(ctx context.Context, plane *sandbox.ControlPlane) error {
	for _, docs := range [][][]byte{manifests.CRDs(), manifests.SpokeCRDs(), manifests.Hub(), manifests.Klusterlet()} {
		if err := plane.Apply(ctx, docs...); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if shared.admin, err = client.New(plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	// What works may apply by default would hide what the agent itself lacks.
	work := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:klusterlet-work:execution"}}
	if err := shared.admin.Delete(ctx, work); err != nil {
		return err
	}
	shared.kube, err = kubernetes.NewForConfig(plane.Admin())
	return err
}

// configure writes the kubeconfigs of the agent into dir, and sets what tests want of it.
func configure(ctx context.Context, plane *sandbox.ControlPlane, dir string) error {
	config := agent.DefaultConfig()
	config.ClusterName, config.Namespace = clusterName, names.NamespaceAgent
	config.Claims.MaxCustom, config.Claims.ReservedSuffixes = maxClaims, []string{reservedSuffix}
	config.Gates.ClusterProperty = true
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return ailing{next} }
	for path, identity := range map[*string][2]string{
		&config.BootstrapKubeconfig: {names.NamespaceBootstrap, names.ServiceAccountBootstrap},
		&config.Kubeconfig:          {names.NamespaceAgent, names.ServiceAccountAgent},
	} {
		cfg, err := plane.ServiceAccount(ctx, identity[0], identity[1])
		if err != nil {
			return err
		}
		if *path, err = writeKubeconfig(plane, cfg, filepath.Join(dir, identity[1])); err != nil {
			return err
		}
	}
	shared.config = config
	return nil
}

// startAgent runs the agent in this process until the returned function is called.
func startAgent(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended, done := make(chan error, 1), make(chan struct{})
	shared.ended = ended
	go func() {
		defer close(done)
		ended <- agent.Run(ctx, shared.config)
	}()
	return func() {
		cancel()
		<-done
	}
}

// ailing is the transport of the agent, for tests that make its API server look sick.
type ailing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a ailing) RoundTrip(request *http.Request) (*http.Response, error) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	path := request.URL.Path
	switch {
	case path == "/livez" && shared.sick.Load():
		return answer(request, http.StatusInternalServerError, "etcd is not well"), nil
	case path == definitions && shared.refuse.Load():
		return answer(request, http.StatusForbidden,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`), nil
	case strings.HasPrefix(path, "/api/v1/namespaces/managed-") && shared.disturb.CompareAndSwap(true, false),
		shared.blind.Load() && (path == "/api/v1/nodes" || path == "/api/v1/namespaces" || path == definitions ||
			strings.HasSuffix(path, "/clusterclaims")):
		return nil, errors.New("the test cut this connection")
	}
	return a.next.RoundTrip(request)
}

// answer is what an API server might have answered.
func answer(request *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func writeKubeconfig(plane *sandbox.ControlPlane, cfg *rest.Config, path string) (string, error) {
	data, err := plane.Kubeconfig(cfg)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}

// join plays the people and the hub manager: it approves the request of the agent and accepts its cluster.
func join(ctx context.Context) error {
	if err := waitFor(ctx, approve); err != nil {
		return fmt.Errorf("approving: %w", err)
	}
	if err := waitFor(ctx, accept); err != nil {
		return fmt.Errorf("accepting: %w", err)
	}
	return nil
}

func approve(ctx context.Context) error {
	requests, err := shared.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
		LabelSelector: names.LabelClusterName + "=" + clusterName,
	})
	if err != nil {
		return err
	}
	if len(requests.Items) == 0 {
		return errors.New("the agent has not asked for a certificate")
	}
	request := &requests.Items[0]
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "by the test",
	})
	_, err = shared.kube.CertificatesV1().CertificateSigningRequests().
		UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	return err
}

func accept(ctx context.Context) error {
	var cluster clusterv1.ManagedCluster
	if err := shared.admin.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
		return err
	}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, leaseSeconds
	if err := shared.admin.Update(ctx, &cluster); err != nil {
		return err
	}
	for _, object := range rights() {
		if err := shared.admin.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return setCondition(ctx, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
}

// rights are what the hub gives an accepted cluster (contract, registration 1.9), as far as this package needs it.
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
	if err := shared.admin.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
		return err
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "by the test",
	})
	return shared.admin.Status().Update(ctx, &cluster)
}

// waitFor calls try until it succeeds, the agent ends, or patience does.
func waitFor(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case ended := <-shared.ended:
			return fmt.Errorf("the agent ended: %w", ended)
		case <-ticker.C:
		}
	}
}
