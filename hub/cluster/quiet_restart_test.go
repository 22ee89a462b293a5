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
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/names"
)

func newQueue(t *testing.T) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// The meter is made when the process starts, and counts when the controller does: a process that waited for hours to
// become the leader has counted nothing, and knows nothing of the end of a finding.
func TestANewLeaderDoesNotSayThatItIsOver(t *testing.T) {
	for _, reason := range []string{reasonWrites, reasonFlips, reasonRequests} {
		t.Run(reason, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(noon().Add(-3 * time.Hour))
			r := &Reconciler{Clock: clock, Meter: meter.New(clock)} // as hub.setup does, before anyone leads
			clock.SetTime(noon())
			require.NoError(t, r.start(t.Context(), newQueue(t))) // it leads, and its watches begin
			f := settledFacts()
			f.now, f.metered = clock.Now(), r.Meter.Read(f.name)
			f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
				condition(names.ConditionAgentQuiet, metav1.ConditionFalse, reason, noon()))
			assert.Nil(t, quietCondition(f), "it says that the agent is quiet, and counted for no time at all")
			assert.False(t, quietWake(f).IsZero())
		})
	}
}

// renewals tells the requests of an agent with certificates of ten minutes, which it renews every seven.
func TestARestartDoesNotCountRequestsTwice(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon())
	r, q := &Reconciler{Clock: clock, Meter: meter.New(clock)}, newQueue(t)
	listed := true
	request := func(at time.Time) {
		o := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{names.LabelClusterName: "c1"}, CreationTimestamp: metav1.NewTime(at),
		}}
		o.Spec.Username = csr.ClusterUser("c1", "agent")
		r.countedRequests().Create(t.Context(), event.CreateEvent{Object: o, IsInInitialList: listed}, q)
	}
	for minute := -27; minute < 0; minute += 7 { // what is listed at the start
		request(noon().Add(time.Duration(minute) * time.Minute))
	}
	listed = false
	for minute := 1; minute < 30; minute += 7 {
		clock.SetTime(noon().Add(time.Duration(minute) * time.Minute))
		request(clock.Now())
		assert.Empty(t, r.found("c1"), "minute %d: no half an hour had more than five requests", minute)
	}
}

// A restart of the hub manager forgets flips, and the condition, which names writes first, is True before they can be
// known.
func TestSeveralFindingsAreOverWhenTheSlowestIs(t *testing.T) {
	f := settledFacts()
	f.metered = meter.Reading{Since: noon().Add(-time.Minute)}
	before := quietMessage([]meter.Finding{
		{Rule: meter.Writes, Thing: meter.Thing{Kind: "ManifestWork", Name: "w"}},
		{Rule: meter.Flips, Thing: meter.Thing{Kind: "ManifestWork", Name: "w"}},
	})
	c := condition(names.ConditionAgentQuiet, metav1.ConditionFalse, reasonWrites, noon())
	c.Message = before
	f.cluster.Status.Conditions = append(f.cluster.Status.Conditions, c)
	assert.Nil(t, quietCondition(f), "the flips that it names are counted in 5 minutes, and one has passed")
}

// A cluster that is deleted, because its agent was noisy, and created again with the same name begins again.
func TestAClusterThatIsCreatedAgainInheritsNothing(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon())
	r, q := &Reconciler{Clock: clock, Meter: meter.New(clock)}, newQueue(t)
	f := settledFacts()
	for range 6 {
		o := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon())}}
		o.Spec.Username = csr.ClusterUser(f.name, "agent")
		r.countedRequests().Create(t.Context(), event.CreateEvent{Object: o}, q)
	}
	r.counted("ManagedCluster", nil).Delete(t.Context(), event.DeleteEvent{Object: f.cluster}, q)
	clock.SetTime(noon().Add(20 * time.Minute)) // deleted, and created again with another UID
	f.cluster.UID, f.cluster.CreationTimestamp = "another", metav1.NewTime(clock.Now())
	f.now, f.metered = clock.Now(), r.Meter.Read(f.name)
	assert.Nil(t, quietCondition(f))
}
