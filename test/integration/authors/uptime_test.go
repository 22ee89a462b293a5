package authors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/sample-raw
func TestTheSampleOfPlainYAML(t *testing.T) {
	t.Parallel()
	uptime.install(t)
	for _, cluster := range []string{east, west} {
		enable(t, "uptime", cluster, "{}", nil)
	}
	for _, cluster := range []string{east, west} {
		says(t, "uptime", cluster, "ManifestApplied=True", "RegistrationApplied=True")
		deployment := get(t, cluster, names.NamespaceAgentAddon, "uptime-agent", &appsv1.Deployment{})
		start(t, pod(t, cluster, names.NamespaceAgentAddon, uptime.agent, deployment.Spec.Template.Spec))
		says(t, "uptime", cluster, "Available=True", "Progressing=False")
		record := get(t, cluster, names.NamespaceAgentAddon, "uptime", &corev1.ConfigMap{})
		_, err := time.Parse(time.RFC3339, record.Data["since"])
		require.NoError(t, err)
		assert.Equal(t, "0", record.Data["outages"])
	}

	setVariable(t, "uptime-central", "uptime", "Interval", "1m")
	for _, cluster := range []string{east, west} {
		argument(t, cluster, names.NamespaceAgentAddon, "uptime-agent", "--interval=1m")
		says(t, "uptime", cluster, "Progressing=False")
	}

	uptimeGoes(t, east)
	says(t, "uptime", west, "Available=True")
	uptimeGoes(t, west)
}

// uptimeGoes deletes the add-on on a cluster, and waits until nothing is left there.
func uptimeGoes(t *testing.T, cluster string) {
	t.Helper()
	disable(t, "uptime", cluster)
	goes(t, plane, addOnOf("uptime", cluster))
	goes(t, clusters[cluster], &appsv1.Deployment{ObjectMeta: at(names.NamespaceAgentAddon, "uptime-agent")},
		&corev1.ServiceAccount{ObjectMeta: at(names.NamespaceAgentAddon, "uptime-agent")},
		&corev1.ConfigMap{ObjectMeta: at(names.NamespaceAgentAddon, "uptime")},
		&coordinationv1.Lease{ObjectMeta: at(names.NamespaceAgentAddon, "uptime")})
}
