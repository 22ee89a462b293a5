// Package plugin_test runs "kubectl spokelet", as it is built, on a hub with our hub manager and a managed cluster with
// our agent, as people who have the roles that are shipped for it, and as one who may read the namespace of one cluster.
// The sample add-on hello is on the cluster, and the image of its pods cannot be pulled: pods are played.
package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// The managed cluster with an agent, and the one without.
const (
	near = "store-1"
	far  = "store-2"
)

// world is what the tests run on.
var world struct {
	hub, cluster *suite.Plane
	// program is the plugin.
	program string
	// viewer and narrow are kubeconfigs of the hub, of a person with ClusterRole spokelet-view everywhere, and of one who
	// has it in the namespace of the near cluster alone.
	viewer, narrow string
	// looker and admin are kubeconfigs of the managed cluster: of ClusterRole spokelet-view-cluster, and of anybody who
	// may read all.
	looker, admin string
}

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		world.hub = suite.Start(t, sandbox.Options{Name: "plugin"}, manifests.Hub())
		suite.StartHub(t, world.hub, func(c *hub.Config) {
			c.InstallCRDs = true
			suite.ServeWebhook(t, c)
		})
		world.hub.AwaitDefinitions(t)
		world.hub.AwaitPolicies(t)
		world.cluster = suite.Start(t, sandbox.Options{Name: near, Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		suite.StartKubelet(t, near, world.cluster, func(*corev1.Pod) bool { return true })
		suite.RunAgent(t, suite.ConfigureAgent(t, world.hub, world.cluster, near, names.NamespaceAgent))
		suite.Admit(t, world.hub, near)
		ctx := t.Context()
		suite.Eventually(t, func() error {
			var own clusterv1.ManagedCluster
			if err := world.hub.Client.Get(ctx, client.ObjectKey{Name: near}, &own); err != nil {
				return err
			}
			own.Labels["environment"] = "demo"
			return world.hub.Client.Update(ctx, &own)
		})
		other := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: far}}
		other.Spec.HubAcceptsClient = true
		require.NoError(t, world.hub.Client.Create(ctx, other))
		require.NoError(t, apply(ctx))
		people(t)
		world.program = filepath.Join(t.TempDir(), "kubectl-spokelet")
		require.NoError(t, suite.BuildPlugin(ctx, world.program))
		breakPods(t)
	})
}

// apply installs the sample add-on.
func apply(ctx context.Context) error {
	files, err := fs.Glob(manifests.Samples(), "hello/[0-9]*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := fs.ReadFile(manifests.Samples(), file)
		if err != nil {
			return err
		}
		if err := world.hub.Apply(ctx, raw); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return nil
}

// people makes the persons of the tests.
func people(t suite.T) {
	t.Helper()
	everywhere, inside := rbacv1.ClusterRoleBinding{}, rbacv1.RoleBinding{}
	bind := func(p *suite.Plane, kind, role, namespace, who string) {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
		subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: who}}
		var object client.Object
		if namespace == "" {
			one := everywhere.DeepCopy()
			one.Name, one.RoleRef, one.Subjects = who, ref, subjects
			object = one
		} else {
			one := inside.DeepCopy()
			one.Namespace, one.Name, one.RoleRef, one.Subjects = namespace, who, ref, subjects
			object = one
		}
		suite.Eventually(t, func() error { return p.Client.Create(t.Context(), object) })
	}
	bind(world.hub, "ClusterRole", "spokelet-view", "", "viewer")
	bind(world.hub, "Role", "spokelet-view", names.NamespaceHub, "viewer")
	bind(world.hub, "ClusterRole", "spokelet-view", near, "narrow")
	bind(world.cluster, "ClusterRole", "spokelet-view-cluster", "", "looker")
	bind(world.cluster, "Role", "spokelet-view-cluster", names.NamespaceAgent, "looker")
	world.viewer, world.narrow = kubeconfig(t, world.hub, "viewer"), kubeconfig(t, world.hub, "narrow")
	world.looker = kubeconfig(t, world.cluster, "looker")
	world.admin = world.cluster.WriteKubeconfig(t, world.cluster.Admin(), t.TempDir(), "admin")
}

// kubeconfig is that of a person.
func kubeconfig(t suite.T, p *suite.Plane, who string) string {
	t.Helper()
	var config *rest.Config
	config, err := p.User(who)
	require.NoError(t, err)
	return p.WriteKubeconfig(t, config, t.TempDir(), who)
}

// breakPods plays the kubelet of the managed cluster: no image can be pulled.
func breakPods(t suite.T) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		if err := world.cluster.Client.List(t.Context(), &pods, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("the add-on has no pods")
		}
		pod := &pods.Items[0]
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: "registry.local/hello:9",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: "manifest unknown",
			}},
		}}
		return world.cluster.Client.Status().Update(t.Context(), pod)
	})
}
