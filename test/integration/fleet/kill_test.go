package fleet_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// TestKilledAtAnyMomentItConverges goes through what the demo shows, from joining to the add-on's removal, and kills
// the agent or the hub manager with kill -9 the moment a step shows its first effect. Started again, they must finish
// it, with one certificate request each for the cluster and the add-on.
func TestKilledAtAnyMomentItConverges(t *testing.T) {
	f, err := fleet.New(t.Context(), fleet.Options{Clusters: []string{"mortal"}, Binaries: shared.binaries, Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	cluster := f.Cluster("mortal")
	require.NoError(t, f.InstallHub(t.Context(), nil))
	require.NoError(t, f.StartAgent(t.Context(), cluster))
	m := &mortal{t: t, fleet: f, cluster: cluster}

	m.killWhen("the ManagedCluster exists", m.managedClusterExists, cluster.Agent)
	m.killWhen("the agent asked for its certificate", m.requests("", 1), cluster.Agent, f.HubManager())
	require.NoError(t, f.Accept(t.Context(), cluster.Name, map[string]string{"environment": "demo"}))
	m.killWhen("the namespace of the cluster exists", m.onHub("", cluster.Name, &corev1.Namespace{}), f.HubManager())
	m.killWhen("the agent has its credential",
		m.onSpoke(names.NamespaceAgent, names.SecretHub, &corev1.Secret{}), cluster.Agent)
	eventually(t, "the cluster to be available", func(ctx context.Context) error {
		return f.WaitAvailable(ctx, cluster, nil)
	})
	require.Len(t, m.certificateRequests(""), 1, "a restarted agent must go on with its request")

	require.NoError(t, f.ApplySample(t.Context(), "hello"))
	m.killWhen("the add-on exists", m.onHub(cluster.Name, "hello", &addonv1beta1.ManagedClusterAddOn{}), f.HubManager())
	m.killWhen("the add-on's certificate was asked for", m.requests("hello", 1), cluster.Agent)
	m.killWhen("the work was taken up", m.anyApplied, cluster.Agent, f.HubManager())
	eventually(t, "the add-on to be rolled out", func(ctx context.Context) error {
		return errors.Join(
			rolledOut(ctx, f, cluster.Name, "hello"),
			m.onSpoke(names.NamespaceAgentAddon, "hello-hub-kubeconfig", &corev1.Secret{})(ctx),
			m.onSpoke(names.NamespaceAgentAddon, "hello-agent", &appsv1.Deployment{})(ctx),
		)
	})
	require.Len(t, m.certificateRequests("hello"), 1, "a restarted agent must go on with its request")

	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	require.NoError(t, f.HubClient.Delete(t.Context(), cma))
	m.killWhen("the work is being deleted", m.worksDeleting, cluster.Agent, f.HubManager())
	eventually(t, "the add-on to be gone", func(ctx context.Context) error { return gone(ctx, f, cluster, "hello") })
}

// mortal is the fleet whose programs get killed.
type mortal struct {
	t       *testing.T
	fleet   *fleet.Fleet
	cluster *fleet.Cluster
}

// killWhen waits for a moment, kills the programs and starts them again.
func (m *mortal) killWhen(what string, holds func(ctx context.Context) error, victims ...*sandbox.Process) {
	m.t.Helper()
	eventually(m.t, what, holds)
	for _, victim := range victims {
		victim.Kill()
	}
	for _, victim := range victims {
		require.NoError(m.t, victim.Start())
	}
}

func (m *mortal) managedClusterExists(ctx context.Context) error {
	return m.fleet.HubClient.Get(ctx, client.ObjectKey{Name: m.cluster.Name}, &clusterv1.ManagedCluster{})
}

func (m *mortal) onHub(namespace, name string, object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return m.fleet.HubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	}
}

func (m *mortal) onSpoke(namespace, name string, object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return m.cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	}
}

// requests holds when at least n certificate requests of an add-on exist, of the cluster itself when addon is empty.
func (m *mortal) requests(addon string, n int) func(context.Context) error {
	return func(context.Context) error {
		if found := len(m.certificateRequests(addon)); found < n {
			return fleet.NotYet("%d certificate requests", found)
		}
		return nil
	}
}

func (m *mortal) certificateRequests(addon string) []certificatesv1.CertificateSigningRequest {
	m.t.Helper()
	var all certificatesv1.CertificateSigningRequestList
	require.NoError(m.t, m.fleet.HubClient.List(m.t.Context(), &all,
		client.MatchingLabels{names.LabelClusterName: m.cluster.Name}))
	var found []certificatesv1.CertificateSigningRequest
	for _, csr := range all.Items {
		if csr.Labels[names.LabelAddonName] == addon {
			found = append(found, csr)
		}
	}
	return found
}

func (m *mortal) anyApplied(ctx context.Context) error {
	var applied workv1.AppliedManifestWorkList
	if err := m.cluster.Client.List(ctx, &applied); err != nil {
		return err
	}
	if len(applied.Items) == 0 {
		return fleet.NotYet("no AppliedManifestWork")
	}
	return nil
}

func (m *mortal) worksDeleting(ctx context.Context) error {
	var works workv1.ManifestWorkList
	if err := m.fleet.HubClient.List(ctx, &works, client.InNamespace(m.cluster.Name)); err != nil {
		return err
	}
	for _, work := range works.Items {
		if work.DeletionTimestamp.IsZero() {
			return fleet.NotYet("work %s is not being deleted", work.Name)
		}
	}
	return nil
}
