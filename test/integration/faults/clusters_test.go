package faults_test

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	signer  = certificatesv1.KubeAPIServerClientSignerName
	nowhere = "example.com/nobody"
)

// ofCluster asks for a cluster, and ofRequest for a certificate request.
func ofCluster(name string) string { return "cluster " + name }
func ofRequest(name string) string { return "csr " + name }

// clusterFaults are the faults of clusters. All of these are played.
func clusterFaults() map[string]fault {
	all := map[string]fault{
		"nobody has accepted the cluster": {
			code: causes.ClusterNotAccepted, ask: ofCluster,
			inject: func(t *testing.T, name string) { t.Helper(); create(t, member(name)) },
			repair: func(t *testing.T, name string) { t.Helper(); accepts(t, name, true); joins(t, name) },
		},
		"a person denies a cluster that was accepted": {
			code: causes.ClusterDenied, ask: ofCluster, well: true, prepare: joined,
			inject: func(t *testing.T, name string) { t.Helper(); accepts(t, name, false) },
			repair: func(t *testing.T, name string) { t.Helper(); accepts(t, name, true) },
		},
		"the cluster does not exist": {
			code: causes.ClusterMissing, ask: ofCluster, inject: func(*testing.T, string) {}, repair: joined,
		},
		"the namespace of the cluster was there before": {
			code: causes.NamespaceOfOthers, ask: ofCluster,
			inject: func(t *testing.T, name string) { t.Helper(); namespaceOn(t, world.hub, name); accepted(t, name) },
			repair: func(t *testing.T, name string) {
				t.Helper()
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
				patch(t, world.hub, ns, `{"metadata":{"labels":{"`+names.LabelClusterName+`":"`+name+`"}}}`)
				joins(t, name)
			},
		},
		"the agent of an accepted cluster never asked": {
			code: causes.ClusterNotJoined, ask: ofCluster, inject: accepted, repair: joins,
		},
		"the heartbeat of the cluster stops": {
			code: causes.ClusterSilent, ask: ofCluster, well: true, prepare: joined,
			inject: func(t *testing.T, name string) {
				t.Helper()
				patch(t, world.hub, member(name), `{"spec":{"leaseDurationSeconds":1}}`)
			},
			repair: func(t *testing.T, name string) {
				t.Helper()
				patch(t, world.hub, member(name), `{"spec":{"leaseDurationSeconds":60}}`)
				beats(t, name, 0)
				available(t, name)
			},
		},
		"the image of the agent cannot be pulled": {
			code: causes.AgentDown, prepare: joined,
			ask: func(name string) string {
				return ofCluster(name) + " --spoke-kubeconfig " + world.looker + " --agent-namespace " + name
			},
			inject: func(t *testing.T, name string) {
				t.Helper()
				patch(t, world.hub, member(name), `{"spec":{"leaseDurationSeconds":1}}`)
				namespaceOn(t, world.cluster, name)
				agent := strings.ReplaceAll(deployment(played, name), "app: played", "app: klusterlet-agent")
				apply(t, world.cluster, strings.Replace(agent, "{name: played,", "{labels: {app: klusterlet-agent}, name: played,", 1))
				pod(t, name, played, waits("ImagePullBackOff", "manifest unknown"))
			},
		},
		"the API server of the cluster does not answer": reported(causes.ClusterUnavailable,
			clusterv1.ManagedClusterConditionAvailable, "ManagedClusterKubeAPIServerUnavailable",
			"The kube-apiserver is not ok, status code: 500, etcd failed", "ManagedClusterAvailable"),
		"the certificate of the agent cannot be renewed": reported(causes.CertificateLate, names.ConditionCertificateRotated,
			"ClientCertificateUpdateFailed", "Failed to create CSR: forbidden", "ClientCertificateUpdated"),
		"the hub was restored and lacks works": reported(causes.WorksMissing, names.ConditionWorksPresent, "WorksMissing",
			"The hub does not have 3 works", "WorksPresent"),
		"the clock of the cluster is an hour ahead": {
			code: causes.ClocksDiffer, ask: ofCluster, well: true, prepare: joined,
			inject: func(t *testing.T, name string) { t.Helper(); beats(t, name, time.Hour) },
			repair: func(t *testing.T, name string) { t.Helper(); beats(t, name, 0) },
		},
		"a work keeps the cluster from being deleted": {
			code: causes.ClusterDeletion, ask: ofCluster, well: true,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				joined(t, name)
				workOf(t, name, "w", workload(settings(name)))
				patch(t, world.hub, workIn(name, "w"), `{"metadata":{"finalizers":["example.com/backup"]}}`)
			},
			inject: func(t *testing.T, name string) { t.Helper(); remove(t, world.hub, member(name)) },
		},
	}
	addRequests(all)
	return all
}

// addRequests adds the faults of certificate requests of clusters.
func addRequests(all map[string]fault) {
	over := func(t *testing.T, name string) {
		t.Helper()
		remove(t, world.hub, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
		joins(t, name)
	}
	all["the request of the cluster waits for a person"] = fault{
		code: causes.RequestPending, ask: ofCluster, prepare: nil,
		inject: func(t *testing.T, name string) { t.Helper(); accepted(t, name); asks(t, name, signer) },
		repair: func(t *testing.T, name string) {
			t.Helper()
			decides(t, name, certificatesv1.CertificateApproved)
			joins(t, name)
		},
	}
	all["a person denies the request of the cluster"] = fault{
		code: causes.RequestDenied, ask: ofCluster,
		inject: func(t *testing.T, name string) {
			t.Helper()
			accepted(t, name)
			asks(t, name, signer)
			decides(t, name, certificatesv1.CertificateDenied)
		},
		repair: over,
	}
	all["nobody signs for the signer of the request"] = fault{
		code: causes.RequestUnsigned, ask: ofCluster,
		inject: func(t *testing.T, name string) {
			t.Helper()
			accepted(t, name)
			asks(t, name, nowhere)
			decides(t, name, certificatesv1.CertificateApproved)
		},
		repair: over,
	}
	all["a request waits, asked for by its name"] = fault{
		code: causes.RequestPending, ask: ofRequest,
		inject: func(t *testing.T, name string) { t.Helper(); asks(t, name, signer) },
		repair: func(t *testing.T, name string) { t.Helper(); decides(t, name, certificatesv1.CertificateApproved) },
	}
	all["a request was denied, asked for by its name"] = fault{
		code: causes.RequestDenied, ask: ofRequest,
		inject: func(t *testing.T, name string) {
			t.Helper()
			asks(t, name, signer)
			decides(t, name, certificatesv1.CertificateDenied)
		},
	}
	all["a request has an unknown signer, asked for by its name"] = fault{
		code: causes.RequestUnsigned, ask: ofRequest,
		inject: func(t *testing.T, name string) {
			t.Helper()
			asks(t, name, nowhere)
			decides(t, name, certificatesv1.CertificateApproved)
		},
	}
}

// reported is the fault that the agent of a cluster reports in a condition.
func reported(code causes.Code, kind, reason, text, well string) fault {
	return fault{
		code: code, ask: ofCluster, well: true, prepare: joined,
		inject: func(t *testing.T, name string) { t.Helper(); reports(t, name, kind, "False", reason, text) },
		repair: func(t *testing.T, name string) { t.Helper(); reports(t, name, kind, "True", well, "") },
	}
}
