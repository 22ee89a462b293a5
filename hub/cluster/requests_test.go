package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

const trusted = "bootstrap@example.com"

// requestFor is a certificate request as the agent of a cluster writes it, by a user, after some changes.
func requestFor(
	t *testing.T, cluster, user string, changes ...func(*certificatesv1.CertificateSigningRequest),
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csrs.NewKey()
	require.NoError(t, err)
	request, err := csrs.ForCluster(cluster, "agent").Build(key)
	require.NoError(t, err)
	request.Name, request.Spec.Username = cluster+"-x", user
	for _, change := range changes {
		change(request)
	}
	return request
}

func ended(kind certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue,
		})
	}
}

func issued(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }

// labelledOurs gives a request the label of the cluster under test.
func labelledOurs(r *certificatesv1.CertificateSigningRequest) {
	r.Labels[names.LabelClusterName] = "c1"
}

func ofAddon(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelAddonName] = "hello" }

// boundTo makes the requester one that is bound to a cluster.
func boundTo(cluster string) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Groups = []string{"system:bootstrappers:managedcluster:" + cluster}
	}
}

// hasJoined is a cluster whose agent has been there, though an administrator took the acceptance away without a trace.
func hasJoined(f *facts) {
	f.cluster.Status.Conditions = []metav1.Condition{
		condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue, "ManagedClusterJoined", noon()),
	}
}

// Shows: registration/acceptance-states
func TestOnWhoseWordANewClusterIsAccepted(t *testing.T) {
	tests := map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		change  func(*facts)
		want    bool
	}{
		"a request of a trusted user for this very cluster": {request: requestFor(t, "c1", trusted), want: true},
		"the same when it is approved and has its certificate": {
			request: requestFor(t, "c1", trusted, ended(certificatesv1.CertificateApproved), issued), want: true,
		},
		"a request of a user that is bound to this cluster, where that is trusted": {
			request: requestFor(t, "c1", "token", boundTo("c1")), change: func(f *facts) { f.trust = approve.Trust{Bound: true} },
			want: true,
		},
		"not of a user that is bound to it, where that is not trusted": {
			request: requestFor(t, "c1", "token", boundTo("c1")),
		},
		"not of a trusted user that is bound to another cluster": {
			request: requestFor(t, "c1", trusted, boundTo("c10")),
		},
		"not where the cluster has joined before": {
			request: requestFor(t, "c1", trusted), change: hasJoined,
		},
		"where the cluster has joined before, if so said": {
			request: requestFor(t, "c1", trusted), want: true,
			change: func(f *facts) { hasJoined(f); f.trust.Joined = true },
		},
		"not of any other user":                       {request: requestFor(t, "c1", "bootstrap@example.org")},
		"not of an agent that renews":                 {request: requestFor(t, "c1", csrs.ClusterUser("c1", "agent"))},
		"not for another cluster":                     {request: requestFor(t, "c10", trusted)},
		"not for another cluster with a forged label": {request: requestFor(t, "c10", trusted, labelledOurs)},
		"not one of an add-on":                        {request: requestFor(t, "c1", trusted, ofAddon)},
		"not one that a person denied": {
			request: requestFor(t, "c1", trusted, ended(certificatesv1.CertificateDenied)),
		},
		"not one with more usages than a client has": {
			request: requestFor(t, "c1", trusted, func(r *certificatesv1.CertificateSigningRequest) {
				r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
			}),
		},
		"not where nobody is trusted": {
			request: requestFor(t, "c1", trusted), change: func(f *facts) { f.trust = approve.Trust{} },
		},
		"not a second time": {
			request: requestFor(t, "c1", trusted), change: func(f *facts) {
				f.cluster.Annotations = map[string]string{names.AnnotationAutoAcceptedOn: "2026-03-01T11:00:00Z"}
			},
		},
		"not a cluster that was accepted before, whatever its conditions say": {
			request: requestFor(t, "c1", trusted), change: func(f *facts) {
				f.cluster.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"}
			},
		},
		"not a cluster that a person denied": {
			request: requestFor(t, "c1", trusted), change: func(f *facts) {
				f.cluster.Status.Conditions = []metav1.Condition{
					condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, reasonDenied, noon()),
				}
			},
		},
		"not a cluster that is going": {
			request: requestFor(t, "c1", trusted), change: func(f *facts) { f.cluster.DeletionTimestamp = deletedAt() },
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.cluster.Spec.HubAcceptsClient, f.cluster.Status.Conditions, f.cluster.Annotations = false, nil, nil
			f.trust, f.requests = approve.Trust{Users: []string{trusted}}, []*certificatesv1.CertificateSigningRequest{tc.request}
			if tc.change != nil {
				tc.change(&f)
			}
			p := decide(f)
			accepted := p.cluster != nil && p.cluster.Spec.HubAcceptsClient
			assert.Equal(t, tc.want, accepted)
			assert.Equal(t, tc.want, p.approvedRequest != nil)
			if tc.want {
				assert.Equal(t, "2026-03-01T12:00:00Z",
					p.cluster.Annotations["open-cluster-management.io/automatically-accepted-on"])
				assert.Equal(t, "2026-03-01T12:00:00Z", p.cluster.Annotations["cluster.spokelet.io/accepted-on"])
				assert.Contains(t, p.cluster.Finalizers, names.FinalizerCluster, "all in one write")
			}
		})
	}
}

func TestAnAcceptanceCostsOneWriteAlsoWhereNothingElseIsToBeWritten(t *testing.T) {
	f := settledFacts()
	f.cluster.Spec.HubAcceptsClient, f.cluster.Status.Conditions = false, f.cluster.Status.Conditions[1:]
	f.cluster.Annotations = nil
	f.trust, f.requests = approve.Trust{Users: []string{trusted}}, []*certificatesv1.CertificateSigningRequest{requestFor(t, "c1", trusted)}
	p := decide(f)
	require.NotNil(t, p.cluster)
	assert.True(t, p.cluster.Spec.HubAcceptsClient)
	assert.False(t, f.cluster.Spec.HubAcceptsClient, "what was observed stays as it was")
}

func TestWhichCertificateRequestsGoWithACluster(t *testing.T) {
	agent, other := csrs.ClusterUser("c1", "agent"), csrs.ClusterUser("c10", "agent")
	tests := map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		goes    bool
	}{
		"a pending first request":                                {requestFor(t, "c1", trusted), true},
		"a first request with its certificate":                   {requestFor(t, "c1", trusted, issued), true},
		"a renewal":                                              {requestFor(t, "c1", agent, issued), true},
		"a request of an add-on":                                 {requestFor(t, "c1", agent, ofAddon, issued), true},
		"a pending request that says nonsense":                   {requestFor(t, "c9", "somebody", labelledOurs), true},
		"not a finished one that says nonsense":                  {requestFor(t, "c9", "somebody", labelledOurs, issued), false},
		"not one of another cluster":                             {requestFor(t, "c10", other), false},
		"not one of another cluster's agent, whatever its label": {requestFor(t, "c1", other, labelledOurs), false},
		"a denied one of our agent":                              {requestFor(t, "c1", agent, ended(certificatesv1.CertificateDenied)), true},
		"one that failed for somebody else stays": {
			requestFor(t, "c9", "x", labelledOurs, ended(certificatesv1.CertificateFailed)), false,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.goes, len(ownRequests("c1", []*certificatesv1.CertificateSigningRequest{tc.request})) == 1)
		})
	}
}
