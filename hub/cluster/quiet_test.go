package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: hub/one-bad-cluster-told
func TestWhatTheHubSaysAboutANoisyAgent(t *testing.T) {
	work := meter.Finding{Rule: meter.Writes, Thing: meter.Thing{Kind: "ManifestWork", Name: "w"}}
	flips := meter.Finding{Rule: meter.Flips, Thing: meter.Thing{Kind: "ManagedClusterAddOn", Name: "hello"}}
	requests := meter.Finding{Rule: meter.Requests, Thing: meter.Thing{Kind: "the agent"}}
	end, long := noon().Add(20*time.Second), noon().Add(-time.Hour)
	const advice = "; look at the log of the agent, or deny the cluster"
	tests := map[string]struct {
		found  []meter.Finding
		since  time.Time
		before string
		want   metav1.ConditionStatus
		reason string
		says   string
		wake   time.Time
	}{
		"of a quiet agent nothing is said": {since: long},
		"a work": {
			since: long, found: []meter.Finding{work}, want: metav1.ConditionFalse, reason: "WritesTooOften", wake: end,
			says: "ManifestWork w was written more than 120 times in 60s, and its spec did not change" + advice,
		},
		"several things": {
			since: long, found: []meter.Finding{flips, requests}, want: metav1.ConditionFalse, reason: "ConditionsFlip",
			says: "conditions of ManagedClusterAddOn hello changed their status more than 30 times in 5m; " +
				"more than 5 certificates of the agent were requested in 30m" + advice,
			wake: end,
		},
		"all works": {
			since: long, found: []meter.Finding{{Rule: meter.Writes}}, want: metav1.ConditionFalse,
			reason: "WritesTooOften", says: "its objects were written more than 12000 times in 60s" + advice, wake: end,
		},
		"all certificates": {
			since: long, found: []meter.Finding{{Rule: meter.Requests}}, want: metav1.ConditionFalse,
			reason: "CertificatesRequestedTooOften", says: "more than 200 certificates were requested in 30m" + advice,
			wake: end,
		},
		"when it is over": {
			since: long, before: "WritesTooOften", want: metav1.ConditionTrue, reason: "AgentQuiet",
			says: "The agent writes and requests no more often than a healthy one",
		},
		"after a restart of the hub manager, nothing is over yet": {
			since: noon().Add(-59 * time.Second), before: "WritesTooOften", wake: noon().Add(29*time.Minute + time.Second),
		},
		"what needs longer to count is over later": {
			since: noon().Add(-time.Minute), before: "CertificatesRequestedTooOften", wake: noon().Add(29 * time.Minute),
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.metered = meter.Reading{Findings: tc.found, Since: tc.since, Next: end}
			if tc.before != "" {
				f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
					condition(names.ConditionAgentQuiet, metav1.ConditionFalse, tc.before, noon()))
			}
			got := conditions(f, decide(f), nil)
			var quiet []metav1.Condition
			for _, c := range got {
				if c.Type == names.ConditionAgentQuiet {
					quiet = append(quiet, c)
				}
			}
			assert.Equal(t, tc.wake, quietWake(f))
			expiry := noon().Add(5 * time.Minute)
			assert.Equal(t, reconcile.Earliest(tc.wake, expiry), decide(f).wake)
			if tc.want == "" {
				assert.Empty(t, quiet)
				return
			}
			require.Len(t, quiet, 1)
			assert.Equal(t, tc.want, quiet[0].Status)
			assert.Equal(t, tc.reason, quiet[0].Reason)
			assert.Equal(t, tc.says, quiet[0].Message)
		})
	}
}

// Shows: hub/one-bad-cluster-told
func TestWhatCountsAsAWriteOfAnAgent(t *testing.T) {
	addOn := func(version string, generation int64, status metav1.ConditionStatus) *addonv1alpha1.ManagedClusterAddOn {
		o := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "hello", ResourceVersion: version, Generation: generation,
		}}
		o.Status.Conditions = []metav1.Condition{condition("Available", status, "Any", noon())}
		return o
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	tests := map[string]struct {
		older, newer *addonv1alpha1.ManagedClusterAddOn
		want         []string
	}{
		"a status is": {addOn("1", 1, yes), addOn("2", 1, yes), []string{"WritesTooOften"}},
		"a status that flips is, twice": {
			addOn("1", 1, yes), addOn("2", 1, no), []string{"WritesTooOften", "ConditionsFlip"},
		},
		"a spec is not":                    {addOn("1", 1, yes), addOn("2", 2, no), nil},
		"the same object once more is not": {addOn("1", 1, yes), addOn("1", 1, yes), nil},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r, q := metered()
			for range 200 {
				r.counted("ManagedClusterAddOn", addonapi.Conditions).
					Update(t.Context(), event.UpdateEvent{ObjectOld: tc.older, ObjectNew: tc.newer}, q)
			}
			assert.Equal(t, tc.want, r.found("c1"))
			assert.Equal(t, len(tc.want) > 0, q.Len() == 1, "the cluster is looked at if something was found")
		})
	}
}

// Shows: hub/one-bad-cluster-told
func TestWhoseCertificateRequestsCount(t *testing.T) {
	tests := map[string]struct {
		user string
		list bool
		want map[string][]string
	}{
		"those of an agent count for its own cluster, whatever their labels say": {
			user: csr.ClusterUser("c2", "agent"),
			want: map[string][]string{"c1": nil, "c2": {"CertificatesRequestedTooOften"}},
		},
		"those of an agent that joins count for the cluster that it names": {
			user: "system:bootstrap:abc", want: map[string][]string{"c1": {"CertificatesRequestedTooOften"}},
		},
		"those that are there at the start are no news": {
			user: "system:bootstrap:abc", list: true, want: map[string][]string{"c1": nil},
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r, q := metered()
			request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{names.LabelClusterName: "c1"},
			}}
			request.Spec.Username = tc.user
			for range 6 {
				r.countedRequests().Create(t.Context(), event.CreateEvent{Object: request, IsInInitialList: tc.list}, q)
			}
			for cluster, want := range tc.want {
				assert.Equal(t, want, r.found(cluster), cluster)
			}
		})
	}
}

// Shows: hub/one-bad-cluster-told
func TestNoClusterIsAccusedOfWhatAnotherUserRequests(t *testing.T) {
	of := func(kind, name string) string {
		return quietMessage([]meter.Finding{{Rule: meter.Requests, Thing: meter.Thing{Kind: kind, Name: name}}})
	}
	assert.Equal(t, "user system:bootstrap:abc requested more than 5 certificates for this cluster in 30m; look at the "+
		"credential of that user, which others may hold, too", of(kindUser, "system:bootstrap:abc"))
	assert.Contains(t, of("the agent", ""), "deny the cluster")
}

// Shows: hub/one-bad-cluster-told
func TestWhatAnotherClientWritesIsWrittenAgain(t *testing.T) {
	f := settledFacts()
	f.metered.Since = f.now
	assert.Nil(t, quietCondition(f), "it is there only once there was something to say")
	f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
		condition(names.ConditionAgentQuiet, metav1.ConditionTrue, "Audited", noon()))
	require.NotNil(t, quietCondition(f))
	assert.Equal(t, reasonQuiet, quietCondition(f).Reason)
}

// Shows: hub/one-bad-cluster-told
func TestAConditionThatIsTakenAwayFlips(t *testing.T) {
	applied := []metav1.Condition{{Type: "Applied", Status: metav1.ConditionTrue}}
	assert.True(t, flipped(applied, nil))
	assert.False(t, flipped(nil, applied), "a new object has none")
}

// metered returns a reconciler that counts, and a queue.
func metered() (*Reconciler, queue) {
	clock := clocktesting.NewFakePassiveClock(noon())
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	return &Reconciler{Clock: clock, Meter: meter.New(clock)}, q
}

// found lists the reasons of what is found about a cluster.
func (r *Reconciler) found(cluster string) []string {
	var all []string
	for _, f := range r.Meter.Read(cluster).Findings {
		all = append(all, quietReason(f.Rule))
	}
	return all
}
