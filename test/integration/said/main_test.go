// Package said_test runs the hub manager and an agent, with the rights that manifests/ ships, against one control plane
// that is hub and managed cluster, lets things go wrong, and reads on the ManagedClusterAddOn and on the
// ClusterManagementAddOn what is wrong and what to do. docs/operations/messages.md lists the messages.
package said_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/manager"
)

const (
	// patience is how long anything may take before a test fails, tick how often a test looks.
	patience, tick = time.Minute, 50 * time.Millisecond
	// home is the name of the cluster.
	home = "home"
)

// shared is what all tests of the package use.
var shared struct {
	plane  *sandbox.ControlPlane
	admin  client.Client
	addOns addonapi.Client
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(sandbox.Main(m, setUp))
}

func setUp(ctx context.Context) (func(), error) {
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "said"})
	if err != nil {
		return nil, err
	}
	shared.plane = plane
	for _, docs := range [][][]byte{manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs(), manifests.Klusterlet()} {
		if err := plane.Apply(ctx, docs...); err != nil {
			return plane.Stop, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, clusterv1.Install, clusterv1beta1.Install,
		clusterv1beta2.Install, workv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	if shared.admin, err = client.New(plane.Admin(), client.Options{Scheme: scheme}); err != nil {
		return plane.Stop, err
	}
	shared.addOns = addonapi.Client{Client: shared.admin}
	config, err := manager.Configure(ctx, plane)
	if err != nil {
		return plane.Stop, err
	}
	stopHub := manager.Start(ctx, config)
	agentConfig, err := configureAgent(ctx, home, names.NamespaceAgent, plane.Dir)
	if err != nil {
		return func() { stopHub(); plane.Stop() }, err
	}
	stopAgent := startAgent(ctx, agentConfig)
	return func() { stopAgent(); stopHub(); plane.Stop() }, admit(ctx, home)
}

// configureAgent returns the configuration of an agent, with the identities that manifests/ ships.
func configureAgent(ctx context.Context, cluster, namespace, dir string) (agent.Config, error) {
	config := agent.DefaultConfig()
	own, err := shared.plane.ServiceAccount(ctx, names.NamespaceAgent, names.ServiceAccountAgent)
	if err != nil {
		return config, err
	}
	bootstrap, err := shared.plane.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	if err != nil {
		return config, err
	}
	files := map[*rest.Config]*string{own: &config.Kubeconfig, bootstrap: &config.BootstrapKubeconfig}
	for identity, path := range files {
		data, err := shared.plane.Kubeconfig(identity)
		if err != nil {
			return config, err
		}
		*path = filepath.Join(dir, cluster+".own.kubeconfig")
		if identity == bootstrap {
			*path = filepath.Join(dir, cluster+".bootstrap.kubeconfig")
		}
		if err := os.WriteFile(*path, data, 0o600); err != nil {
			return config, err
		}
	}
	config.ClusterName, config.Namespace, config.LeaderElect = cluster, namespace, false
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return config, err
	}
	config.HealthAddress = fmt.Sprintf("127.0.0.1:%d", ports[0])
	return config, nil
}

// startAgent runs an agent until stop is called.
func startAgent(ctx context.Context, config agent.Config) (stop func()) {
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.WithoutCancel(ctx), logr.Discard()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := agent.Run(ctx, config); err != nil {
			fmt.Fprintln(os.Stderr, "the agent ended:", err)
		}
	}()
	return func() { cancel(); <-ended }
}

// admit accepts the cluster and approves its request, as a person does, and waits until it is available.
func admit(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := tryAdmit(ctx, cluster)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("admitting the cluster: %w", err)
		case <-ticker.C:
		}
	}
}

func tryAdmit(ctx context.Context, name string) error {
	var cluster clusterv1.ManagedCluster
	if err := shared.admin.Get(ctx, types.NamespacedName{Name: name}, &cluster); err != nil {
		return err
	}
	if meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
		return nil
	}
	if !cluster.Spec.HubAcceptsClient {
		cluster.Spec.HubAcceptsClient = true
		if err := shared.admin.Update(ctx, &cluster); err != nil {
			return err
		}
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := shared.admin.List(ctx, &requests, client.MatchingLabels{names.LabelClusterName: name}); err != nil {
		return err
	}
	for i := range requests.Items {
		if err := decide(ctx, &requests.Items[i], certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	return errors.New("the cluster is not available yet")
}

// decide approves or denies a request as a person does; nothing happens to one that was decided before.
func decide(
	ctx context.Context, request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType,
) error {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied {
			return nil
		}
	}
	request.ResourceVersion = "" // the hub may comment on it at the same moment
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: "ByJane", Message: "said Jane",
	})
	return shared.admin.SubResource("approval").Update(ctx, request)
}

// eventually waits until holds returns nil. Conditions run in the goroutine of the test, so they may use require.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "still not so after %s: %v", patience, err)
		<-ticker.C
	}
}

// says waits until a condition of a ManagedClusterAddOn has a status and a reason, and its message all the texts.
func says(t *testing.T, addOn, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	saysOn(t, home, addOn, kind, status, reason, texts...)
}

// saysOn is says for another cluster.
func saysOn(
	t *testing.T, cluster, addOn, kind string, status metav1.ConditionStatus, reason string, texts ...string,
) {
	t.Helper()
	var message string
	eventually(t, func() error {
		found, err := shared.addOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: cluster, Name: addOn})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, kind)
		if err := matches(c, status, reason, texts...); err != nil {
			return fmt.Errorf("%w; all conditions: %v", err, found.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	t.Logf("%s: %s: %s", kind, reason, message)
}
