package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// accepted is a cluster that an administrator accepted and the hub manager let in.
func accepted(t *testing.T, name string) {
	t.Helper()
	cluster := named(name)
	cluster.Spec.HubAcceptsClient = true
	create(t, cluster)
	becomes(t, name, conditioned(metav1.ConditionTrue))
}

// conditioned reports whether the hub says of a cluster that it is accepted, or that it is not.
func conditioned(status metav1.ConditionStatus) func(*clusterv1.ManagedCluster) bool {
	return func(c *clusterv1.ManagedCluster) bool {
		return meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted, status)
	}
}

func TestAnAcceptedAgentChangesNothingOfWhatPeopleDecide(t *testing.T) {
	t.Parallel()
	accepted(t, "agent-a")
	becomes(t, "agent-a", func(c *clusterv1.ManagedCluster) bool { return c.Annotations[names.AnnotationAcceptedOn] != "" })
	require.NoError(t, change(t, plane.Client, "agent-a", func(c *clusterv1.ManagedCluster) {
		c.Annotations[names.AnnotationAutoAcceptedOn] = "2026-01-01T00:00:00Z"
	}))
	own := agent(t, "agent-a")
	for sentence, tc := range map[string]struct {
		edit func(*clusterv1.ManagedCluster)
		says string
	}{
		"it moves into no other set": {
			func(c *clusterv1.ManagedCluster) { c.Labels[setLabel] = "prod" }, "ManagedClusterSet default or prod",
		},
		"it leaves no set": {
			func(c *clusterv1.ManagedCluster) { delete(c.Labels, setLabel) }, "ManagedClusterSet default",
		},
		"it empties no set": {
			func(c *clusterv1.ManagedCluster) { c.Labels[setLabel] = "" }, "ManagedClusterSet default",
		},
		"it removes no mark": {
			func(c *clusterv1.ManagedCluster) { delete(c.Annotations, names.AnnotationAcceptedOn) },
			"annotation " + names.AnnotationAcceptedOn,
		},
		"it changes no mark": {
			func(c *clusterv1.ManagedCluster) { c.Annotations[names.AnnotationAcceptedOn] = "x" },
			"annotation " + names.AnnotationAcceptedOn,
		},
		"it does not remove that of OCM either": {
			func(c *clusterv1.ManagedCluster) { delete(c.Annotations, names.AnnotationAutoAcceptedOn) },
			"annotation " + names.AnnotationAutoAcceptedOn,
		},
		"it does not remove all annotations": {
			func(c *clusterv1.ManagedCluster) { c.Annotations = nil },
			"annotation " + names.AnnotationAcceptedOn + ", " + names.AnnotationAutoAcceptedOn,
		},
		"denied and accepted in one is no way": {
			func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient, c.Annotations = false, nil },
			"annotation " + names.AnnotationAcceptedOn,
		},
	} {
		t.Run(sentence, func(t *testing.T) { forbidden(t, change(t, own, "agent-a", tc.edit), clusters, tc.says) })
	}
	require.NoError(t, change(t, own, "agent-a", func(c *clusterv1.ManagedCluster) {
		c.Annotations["agent.open-cluster-management.io/x"] = "y"
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://own:6443"}}
	}), "what is its own it may change")
}

// TestADenialStands plays an agent that prepares for the day on which it is denied: it strips whatever tells that its
// cluster was accepted, and then a trusted user asks to let the cluster in.
func TestADenialStands(t *testing.T) {
	const name = "denial"
	accepted(t, name)
	own := agent(t, name)
	forbidden(t, change(t, own, name, func(c *clusterv1.ManagedCluster) { c.Annotations = nil }), clusters,
		"annotation "+names.AnnotationAcceptedOn)
	forbidden(t, change(t, own, name, func(c *clusterv1.ManagedCluster) { c.Finalizers = nil }),
		"hub-agent-clusters.spokelet.io", "metadata.finalizers")

	// The hub manager is away, so that nothing is repaired, and the agent can take the condition from its own status.
	manager.Stop()
	stopped := true
	t.Cleanup(func() {
		if stopped {
			manager.Start()
		}
	})
	require.NoError(t, change(t, plane.Client, name, func(c *clusterv1.ManagedCluster) { c.Finalizers = nil }))
	suite.Eventually(t, func() error {
		cluster := read(t, name)
		cluster.Status.Conditions = nil
		return own.Status().Update(t.Context(), cluster)
	})
	require.NoError(t, change(t, plane.Client, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }))
	assert.Empty(t, read(t, name).Status.Conditions)
	request(t, as(t, trustedUser, "system:bootstrappers:managedcluster"), name)
	manager.Start()
	stopped = false

	becomes(t, name, conditioned(metav1.ConditionFalse))
	// A new cluster that the trusted user asks for later is let in, so the request before it was looked at.
	require.NoError(t, plane.Client.Create(t.Context(), named("denial-later")))
	remove(t, named("denial-later"))
	request(t, as(t, trustedUser, "system:bootstrappers:managedcluster"), "denial-later")
	becomes(t, "denial-later", conditioned(metav1.ConditionTrue))
	assert.False(t, read(t, name).Spec.HubAcceptsClient)

	err := change(t, own, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	require.True(t, apierrors.IsForbidden(err), "a denied agent may not even write: %v", err)
	bound := user(t, "could-write")
	forbidden(t, change(t, bound, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }), clusters,
		"may not accept cluster "+name)
	forbidden(t, change(t, bound, name, func(c *clusterv1.ManagedCluster) { c.Annotations = nil }), clusters,
		"annotation "+names.AnnotationAcceptedOn)
	acceptor := user(t, "may-accept", accept(name))
	require.NoError(t, change(t, acceptor, name, func(c *clusterv1.ManagedCluster) { c.Annotations = nil }),
		"who may accept the cluster may have it count as new")
}

// request asks for the first credential of a cluster.
func request(t *testing.T, c client.Client, cluster string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	asked, err := csr.ForCluster(cluster, "agent").Build(key)
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), asked))
	return asked
}
