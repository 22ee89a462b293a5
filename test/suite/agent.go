package suite

import (
	"context"
	"fmt"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// ConfigureAgent returns the default configuration of the agent of a cluster, with the identities that manifests/
// ships: one to join the hub, one on its own cluster. Its Secrets are in the namespace, on its own cluster. It serves
// its health on a free port of loopback.
func ConfigureAgent(t T, hub, own *Plane, cluster, namespace string) agent.Config {
	t.Helper()
	dir := t.TempDir()
	config := agent.DefaultConfig()
	config.ClusterName, config.Namespace, config.LeaderElect = cluster, namespace, false
	config.HealthAddress = "127.0.0.1:" + strconv.Itoa(FreePort(t))
	config.BootstrapKubeconfig = hub.WriteKubeconfig(t,
		hub.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap), dir, "bootstrap")
	config.Kubeconfig = own.WriteKubeconfig(t,
		own.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent), dir, "own")
	return config
}

// RunAgent runs an agent.
func RunAgent(t T, config agent.Config) *Program {
	t.Helper()
	return StartProgram(t, "the agent of "+config.ClusterName,
		func(ctx context.Context) error { return agent.Run(ctx, config) })
}

// Admit does for a cluster what people do on a hub: it accepts the cluster and approves its requests, until the cluster
// is available.
func Admit(t T, hub *Plane, cluster string) {
	t.Helper()
	Eventually(t, func() error {
		found, err := AdmitOnce(t.Context(), hub, cluster)
		if err != nil || meta.IsStatusConditionTrue(found.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return err
		}
		return fmt.Errorf("the cluster is not available: %v", found.Status.Conditions)
	})
}

// AdmitOnce does once what Admit does until the cluster is available, and returns the cluster as it was found. The
// cluster must exist.
func AdmitOnce(ctx context.Context, hub *Plane, cluster string) (*clusterv1.ManagedCluster, error) {
	var found clusterv1.ManagedCluster
	if err := hub.Client.Get(ctx, client.ObjectKey{Name: cluster}, &found); err != nil {
		return nil, err
	}
	if !found.Spec.HubAcceptsClient {
		found.Spec.HubAcceptsClient = true
		if err := hub.Client.Update(ctx, &found); err != nil {
			return nil, err
		}
	}
	return &found, approveAll(ctx, hub, cluster)
}

// approveAll approves the requests of a cluster.
func approveAll(ctx context.Context, hub *Plane, cluster string) error {
	var requests certificatesv1.CertificateSigningRequestList
	if err := hub.Client.List(ctx, &requests, client.MatchingLabels{names.LabelClusterName: cluster}); err != nil {
		return err
	}
	for i := range requests.Items {
		if err := Decide(ctx, hub, &requests.Items[i], certificatesv1.CertificateApproved); err != nil {
			return err
		}
	}
	return nil
}

// Decide approves or denies a request as a person does. Nothing happens to one that a user decided about before.
func Decide(
	ctx context.Context, hub *Plane, request *certificatesv1.CertificateSigningRequest,
	kind certificatesv1.RequestConditionType,
) error {
	if !csr.Undecided(request) {
		return nil
	}
	request.ResourceVersion = "" // the hub may comment on it at the same moment
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: "ByJane", Message: "said Jane",
	})
	return hub.Client.SubResource("approval").Update(ctx, request)
}
