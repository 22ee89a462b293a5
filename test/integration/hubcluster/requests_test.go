package hubcluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const bootstrapGroup = "system:bootstrappers:managedcluster"

// TestHugeRequestsAreRefusedAtTheDoor sends what would fill the memory of the hub manager and of agents.
func TestHugeRequestsAreRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	agent, bootstrap := acceptedAgent(t, "huge"), userClient(t, "huge-bootstrap", bootstrapGroup)
	big := strings.Repeat("x", 200_000)
	many := map[string]string{}
	for n := range 40 {
		many[fmt.Sprintf("example.com/%d", n)] = "x"
	}
	for sentence, tc := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest)
		words  string
	}{
		"a long spec.request": {
			func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = append(r.Spec.Request, big...) },
			"may have 4096 bytes",
		},
		"a long annotation": {
			func(r *certificatesv1.CertificateSigningRequest) { r.Annotations = map[string]string{"a": big} },
			"may have 16 annotations of 4096 bytes in all",
		},
		"many annotations": {
			func(r *certificatesv1.CertificateSigningRequest) { r.Annotations = many }, "may have 16 annotations",
		},
		"many labels": {
			func(r *certificatesv1.CertificateSigningRequest) {
				for key, value := range many {
					r.Labels[key] = value
				}
			}, "may have 16 labels",
		},
		"a long owner": {
			func(r *certificatesv1.CertificateSigningRequest) {
				r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: big, UID: "1"}}
			}, "4 owners with short names",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, c := range []client.Client{agent, bootstrap} {
				err := c.Create(t.Context(), newRequest(t, "huge", tc.change))
				require.ErrorContains(t, err, tc.words)
			}
		})
	}
	t.Run("a ManagedCluster with a long annotation", func(t *testing.T) {
		err := bootstrap.Create(t.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "huge-new", Annotations: map[string]string{"a": big}},
		})
		// The policy about agents, to which a bootstrap credential counts, refuses the same.
		require.ErrorContains(t, err, "32")
		require.ErrorContains(t, err, "8192 bytes in all")
	})
	t.Run("a ManagedCluster with many addresses", func(t *testing.T) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "huge-new"}}
		for n := range 9 {
			cluster.Spec.ManagedClusterClientConfigs = append(cluster.Spec.ManagedClusterClientConfigs,
				clusterv1.ClientConfig{URL: fmt.Sprintf("https://%d.example.com", n), CABundle: []byte("ca")})
		}
		require.ErrorContains(t, bootstrap.Create(t.Context(), cluster), "8 addresses of 2048 bytes")
		cluster.Spec.ManagedClusterClientConfigs = cluster.Spec.ManagedClusterClientConfigs[:8]
		require.NoError(t, bootstrap.Create(t.Context(), cluster))
	})
	t.Run("and requests with the largest key and what tools add pass", func(t *testing.T) {
		require.NoError(t, agent.Create(t.Context(), newRequest(t, "huge", func(r *certificatesv1.CertificateSigningRequest) {
			r.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: big[:4000]}
			r.Spec.Request = append(r.Spec.Request, strings.Repeat("\n", 3000)...)
		})))
	})
}

// TestAHugeRequestThatExistsIsRefusedWithAWord labels one afterwards, as none can be created.
func TestAHugeRequestThatExistsIsRefusedWithAWord(t *testing.T) {
	t.Parallel()
	request := newRequest(t, "huge-late", func(r *certificatesv1.CertificateSigningRequest) {
		r.Labels = nil
		r.Spec.Request = append(r.Spec.Request, strings.Repeat("x", 500_000)...)
	})
	require.NoError(t, plane.Client.Create(t.Context(), request))
	patch(t, request, `{"metadata":{"labels":{"`+names.LabelClusterName+`":"huge-late"}}}`)
	event := expectEvent(t, request, approve.ReasonRequestTooLarge)
	assert.Contains(t, event.Message, "it is too large: spec.request may have 4096 bytes")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
}

// TestAnApprovalKeepsWhatOthersWroteIntoTheMetadata: the hub manager writes what its cache holds.
func TestAnApprovalKeepsWhatOthersWroteIntoTheMetadata(t *testing.T) {
	t.Parallel()
	agent := acceptedAgent(t, "kept")
	request := newRequest(t, "kept", func(r *certificatesv1.CertificateSigningRequest) {
		r.Annotations = map[string]string{"example.com/a": "b"}
		r.Labels["example.com/l"] = "m"
	})
	require.NoError(t, agent.Create(t.Context(), request))
	patch(t, request, `{"metadata":{"finalizers":["example.com/f"]}}`) // The agent may not write it.
	want := request.ObjectMeta.DeepCopy()
	expectIssued(t, request)
	assert.Equal(t, want.Annotations, request.Annotations)
	assert.Equal(t, want.Labels, request.Labels)
	assert.Equal(t, want.Finalizers, request.Finalizers)
	assert.NotEmpty(t, request.ManagedFields)
	release(t, &certificatesv1.CertificateSigningRequest{}, client.ObjectKeyFromObject(request))
}

// TestAFloodDoesNotDelayAnother lets a bootstrap user create hundreds of requests while the hub manager is away, and another
// one renew behind them. Who is judged when is read from the revisions of the hub and not from a clock.
func TestAFloodDoesNotDelayAnother(t *testing.T) {
	const flood = 400
	attacker, victim := userClient(t, "flooding", bootstrapGroup), acceptedAgent(t, "flooded")
	manager.Stop()
	flooding := map[string]bool{}
	for n := range flood {
		request := newRequest(t, "flooded", func(r *certificatesv1.CertificateSigningRequest) {
			r.Name = fmt.Sprintf("flood-%03d", n)
		})
		require.NoError(t, attacker.Create(t.Context(), request))
		flooding[string(request.UID)] = true
	}
	renewal := newRequest(t, "flooded", func(r *certificatesv1.CertificateSigningRequest) { r.Name = "zz-renewal" })
	require.NoError(t, victim.Create(t.Context(), renewal))
	hub, err := kubernetes.NewForConfig(plane.Admin())
	require.NoError(t, err)
	watch, err := hub.CertificatesV1().CertificateSigningRequests().Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + renewal.Name, ResourceVersion: renewal.ResourceVersion,
	})
	require.NoError(t, err)
	defer watch.Stop()

	manager.Start()
	approved := 0
	for event := range watch.ResultChan() {
		now, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		require.True(t, ok)
		if !csr.Undecided(now) {
			approved = revision(t, now)
			break
		}
	}
	var told corev1.EventList
	suite.Eventually(t, func() error {
		require.NoError(t, plane.Client.List(t.Context(), &told, client.InNamespace(metav1.NamespaceDefault)))
		after := 0
		for i := range told.Items {
			if flooding[string(told.Items[i].InvolvedObject.UID)] {
				after++
			}
		}
		return equal(250, after) // and no more: Events about one requester are bounded
	})
	before := 0
	for i := range told.Items {
		if flooding[string(told.Items[i].InvolvedObject.UID)] && revision(t, &told.Items[i]) < approved {
			before++
		}
	}
	t.Logf("%d of %d requests of the flood were judged before the renewal", before, flood)
	assert.Less(t, before, flood/10)
	for n := range flood {
		require.NoError(t, plane.Client.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flood-%03d", n)},
		}))
	}
}

func revision(t *testing.T, o client.Object) int {
	t.Helper()
	at, err := strconv.Atoi(o.GetResourceVersion())
	require.NoError(t, err)
	return at
}

// acceptedAgent is the agent of a new cluster that an administrator accepts.
func acceptedAgent(t *testing.T, cluster string) client.Client {
	t.Helper()
	eventuallyCreate(t, plane.Client, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	expectCondition(t, cluster, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
		"HubClusterAdminAccepted")
	agent := userClient(t, csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	suite.Eventually(t, func() error { // the API server hears of each of its roles by itself
		return errors.Join(
			agent.Get(t.Context(), client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{}),
			agent.List(t.Context(), &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster)),
			agent.List(t.Context(), &workv1.ManifestWorkList{}, client.InNamespace(cluster)))
	})
	return agent
}

// newRequest is the request of the agent of a cluster, changed.
func newRequest(
	t *testing.T, cluster string, change func(*certificatesv1.CertificateSigningRequest),
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	request, err := csr.ForCluster(cluster, "agent").Build(key)
	require.NoError(t, err)
	change(request)
	return request
}

// expectEvent waits for the Event with a reason on a request.
func expectEvent(t *testing.T, request *certificatesv1.CertificateSigningRequest, reason string) corev1.Event {
	t.Helper()
	var found corev1.Event
	suite.Eventually(t, func() error {
		var events corev1.EventList
		require.NoError(t, plane.Client.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault),
			client.MatchingFields{"involvedObject.uid": string(request.UID)}))
		for _, event := range events.Items {
			if event.Reason == reason {
				found = event
				return nil
			}
		}
		return fmt.Errorf("no event %s on %s: %v", reason, request.Name, events.Items)
	})
	return found
}

func expectIssued(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	suite.Eventually(t, func() error {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(request), request))
		return equal(true, len(request.Status.Certificate) > 0)
	})
}

func expectOpen(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	assert.True(t, csr.Undecided(request))
}

// forbidden checks that a user is refused with words.
func forbidden(t *testing.T, err error, words string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, words)
}
