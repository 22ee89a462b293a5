// Package versions_test takes a version of the add-on API away from a hub while an agent and a hub manager use it.
package versions_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	clusterName    = "c1"
	patience, tick = time.Minute, 100 * time.Millisecond
)

// shared is the control plane, which is hub and managed cluster at once.
var shared struct {
	plane *sandbox.ControlPlane
	admin client.Client
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(sandbox.Main(m, func(ctx context.Context) (func(), error) {
		plane, err := sandbox.Start(ctx, sandbox.Options{Name: "versions"})
		if err != nil {
			return nil, err
		}
		shared.plane = plane
		for _, docs := range [][][]byte{
			manifests.CRDs(), manifests.SpokeCRDs(), manifests.Hub(), manifests.Klusterlet(),
		} {
			if err := plane.Apply(ctx, docs...); err != nil {
				return plane.Stop, err
			}
		}
		shared.admin, err = client.New(plane.Admin(), client.Options{})
		return plane.Stop, err
	}))
}

func TestAVersionThatIsNoLongerServedIsNoticed(t *testing.T) {
	hubEnded := startHub(t)
	address := startAgent(t)
	eventually(t, func() bool { return ready(t, address) }, "the agent serves")
	createAddon(t, "v1alpha1", "before")
	eventually(t, func() bool { return reported(t, "v1alpha1", "before") }, "an add-on is reported")

	serve(t, "v1alpha1", false)
	select {
	case err := <-hubEnded:
		require.ErrorContains(t, err, "the hub serves add-ons in v1beta1 and no longer in v1alpha1: the hub manager has to "+
			"be started again")
	case <-time.After(patience):
		require.Fail(t, "the hub manager does not notice")
	}
	createAddon(t, "v1beta1", "after")
	eventually(t, func() bool { return reported(t, "v1beta1", "after") }, "the agent uses the other version")
	eventually(t, func() bool { return ready(t, address) }, "the agent serves again")

	// Definitions that are being repaired end nothing, and the agent says that it sees no add-ons.
	serve(t, "v1alpha1", true)
	serve(t, "v1beta1", false)
	createAddon(t, "v1alpha1", "back")
	eventually(t, func() bool { return reported(t, "v1alpha1", "back") }, "and goes back")
}

// startHub runs the hub manager and returns how it ends.
func startHub(t *testing.T) <-chan error {
	t.Helper()
	config := hub.DefaultConfig()
	config.Kubeconfig = kubeconfig(t, names.NamespaceHub, names.ServiceAccountManager)
	config.Namespace, config.HealthAddress, config.LeaderElect = names.NamespaceHub, "0", false
	config.AutoApprovedCSRUsers = []string{
		"system:serviceaccount:" + names.NamespaceBootstrap + ":" + names.ServiceAccountBootstrap,
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- hub.Run(ctx, config)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return ended
}

// startAgent runs the agent and returns where it says how it is.
func startAgent(t *testing.T) string {
	t.Helper()
	ports, err := sandbox.FreePorts(1)
	require.NoError(t, err)
	config := agent.DefaultConfig()
	config.ClusterName, config.Namespace, config.LeaderElect = clusterName, names.NamespaceAgent, false
	config.Kubeconfig = kubeconfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	config.BootstrapKubeconfig = kubeconfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	config.HealthAddress = "127.0.0.1:" + strconv.Itoa(ports[0])
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return "http://" + config.HealthAddress + "/readyz"
}

func kubeconfig(t *testing.T, namespace, name string) string {
	t.Helper()
	config, err := shared.plane.ServiceAccount(t.Context(), namespace, name)
	require.NoError(t, err)
	data, err := shared.plane.Kubeconfig(config)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func ready(t *testing.T, address string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode == http.StatusOK
}

func addon(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "addon.open-cluster-management.io", Version: version, Kind: "ManagedClusterAddOn",
	})
	return o
}

// createAddon creates an add-on as soon as the API server serves the version.
func createAddon(t *testing.T, version, name string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		o := addon(version)
		o.SetNamespace(clusterName)
		o.SetName(name)
		o.Object["spec"] = map[string]any{}
		assert.NoError(c, shared.admin.Create(t.Context(), o))
	}, patience, tick, "an add-on is created in "+version)
}

// reported reports whether the agent said something about an add-on.
func reported(t *testing.T, version, name string) bool {
	t.Helper()
	o := addon(version)
	err := shared.admin.Get(t.Context(), types.NamespacedName{Namespace: clusterName, Name: name}, o)
	if err != nil {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	require.NoError(t, err)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Available" {
			return true
		}
	}
	return false
}

// serve says for all kinds of add-ons whether a version is served.
func serve(t *testing.T, version string, served bool) {
	t.Helper()
	for _, plural := range []string{"managedclusteraddons", "clustermanagementaddons"} {
		eventually(t, func() bool {
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			name := types.NamespacedName{Name: plural + ".addon.open-cluster-management.io"}
			require.NoError(t, shared.admin.Get(t.Context(), name, crd))
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			require.NoError(t, err)
			for _, v := range versions {
				if one, ok := v.(map[string]any); ok && one["name"] == version {
					one["served"] = served
				}
			}
			require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
			return shared.admin.Update(t.Context(), crd) == nil
		}, "the definition is written")
	}
}

func eventually(t *testing.T, done func() bool, message string) {
	t.Helper()
	require.Eventually(t, done, patience, tick, message)
}
