// Package accounts_test runs agents with two ServiceAccounts on the managed cluster, one for registration and one with
// few rights under which works are applied, as these overlays set them up: klusterlet-without-rights on the hub itself,
// klusterlet-hosted-without-rights with the hub as the hosting cluster of another cluster. The files in testdata are what
// kustomize makes of the overlays.
package accounts_test

import (
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var (
	//go:embed testdata/klusterlet.yaml
	klusterletOverlay []byte
	//go:embed testdata/hosting.yaml
	hostingOverlay []byte
	//go:embed testdata/managed.yaml
	managedOverlay []byte
)

const (
	// hostedCluster is the cluster of the agent on the hosting cluster, and its namespace in the overlay.
	hostedCluster = "cluster1"
	// works is the namespace of the overlays in which works have rights.
	works = "open-cluster-management-works"
	// own is the ServiceAccount of the agent itself on the managed cluster.
	own = "klusterlet-registration-sa"
)

// site is a managed cluster with its agent.
type site struct {
	// cluster is its name on the hub.
	cluster string
	plane   *suite.Plane
	agent   *suite.Program
}

var (
	hub *suite.Plane
	// sites are the managed clusters, by where their agents run.
	sites = map[string]*site{}
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		hub = suite.Start(t, sandbox.Options{Name: "accounts"},
			manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs(), [][]byte{klusterletOverlay, hostingOverlay})
		managed := suite.Start(t, sandbox.Options{Name: "accounts-managed", Managed: true}, manifests.SpokeCRDs(), [][]byte{managedOverlay})
		suite.StartHub(t, hub)
		sites["on the cluster"] = runAgent(t, "accounts")
		sites["on a hosting cluster"] = runHosted(t, managed)
		for _, s := range sites {
			suite.Admit(t, hub, s.cluster)
		}
	})
}

// shippedConfig returns the ServiceAccount of the pod of a Deployment among rendered objects, and its flags as a
// configuration.
func shippedConfig(t suite.T, overlay []byte) (account string, config agent.Config) {
	t.Helper()
	objects, err := sandbox.Decode(overlay)
	require.NoError(t, err)
	var pod *corev1.PodSpec
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			var deployment appsv1.Deployment
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
			pod = &deployment.Spec.Template.Spec
		}
	}
	require.NotNil(t, pod)
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.NewReplacer("$(CLUSTER_NAME)", hostedCluster, "$(POD_NAMESPACE)", hostedCluster).Replace(arg))
	}
	config, err = agent.ParseFlags("/spokelet", args, io.Discard)
	require.NoError(t, err)
	return pod.ServiceAccountName, config
}

// runAgent runs the agent of the hub itself, as a cluster of that name. Changes are those of flags.
func runAgent(t suite.T, cluster string, changes ...func(*agent.Config)) *site {
	t.Helper()
	account, shipped := shippedConfig(t, klusterletOverlay)
	config := suite.ConfigureAgent(t, hub, hub, cluster, names.NamespaceAgent)
	config.Kubeconfig = hub.WriteKubeconfig(t, hub.AccountConfig(t, names.NamespaceAgent, account), t.TempDir(), "own")
	config.WorkServiceAccount = shipped.WorkServiceAccount
	for _, change := range changes {
		change(&config)
	}
	return &site{cluster: cluster, plane: hub, agent: suite.RunAgent(t, config)}
}

// runHosted runs the agent of a managed cluster on the hub.
func runHosted(t suite.T, managed *suite.Plane) *site {
	t.Helper()
	// The hosting cluster is the hub here, where the namespace of the cluster has the same name.
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, names.LabelClusterName, hostedCluster)
	require.NoError(t, hub.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hostedCluster}},
		client.RawPatch(types.MergePatchType, label)))
	account, config := shippedConfig(t, hostingOverlay)
	dir := t.TempDir()
	bootstrap, err := hub.Kubeconfig(hub.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap))
	require.NoError(t, err)
	require.NoError(t, hub.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostedCluster, Name: names.SecretBootstrap},
		Data:       map[string][]byte{"kubeconfig": bootstrap},
	}))
	config.Namespace = hostedCluster
	config.Kubeconfig = hub.WriteKubeconfig(t, hub.AccountConfig(t, hostedCluster, account), dir, "own")
	config.SpokeKubeconfig = managed.WriteKubeconfig(t, managed.AccountConfig(t, names.NamespaceAgent, own), dir, "managed")
	config.WorkCacheDir = filepath.Join(dir, "works")
	config.HealthAddress = "127.0.0.1:" + strconv.Itoa(suite.FreePort(t))
	return &site{cluster: hostedCluster, plane: managed, agent: suite.RunAgent(t, config)}
}
