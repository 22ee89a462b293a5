package approval

import (
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// named is an open request of a user.
func named(name, user string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: "c1"}},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Username: user},
	}
}

// TestARequestIsJudgedBeforeThoseOfRequestersWhoHaveMore queues a flood and the requests of two others behind it.
func TestARequestIsJudgedBeforeThoseOfRequestersWhoHaveMore(t *testing.T) {
	r := &Reconciler{}
	q := priorityqueue.New[ctrl.Request]("test")
	t.Cleanup(q.ShutDown)
	h := r.ofRequests()
	const flood = 300
	create := func(name, user string) {
		h.Create(t.Context(), event.CreateEvent{Object: named(name, user), IsInInitialList: true}, q)
	}
	for n := range flood {
		create(fmt.Sprintf("flood%d", n), "attacker")
	}
	create("victim", "agent")
	create("other1", "other")
	create("other2", "other")
	require.Eventually(t, func() bool { return q.Len() == flood+3 }, time.Minute, time.Millisecond)
	place := map[string]int{}
	for n := range flood + 3 {
		item, shutdown := q.Get()
		require.False(t, shutdown)
		q.Done(item)
		place[item.Name] = n
	}
	assert.Less(t, place["victim"], 3, "behind the first of each of the others at most")
	assert.Less(t, place["other1"], 3)
	assert.Less(t, place["other2"], 5)
}

func TestRequestsThatAreFinishedOrGoneDoNotCount(t *testing.T) {
	r := &Reconciler{}
	q := priorityqueue.New[ctrl.Request]("test")
	t.Cleanup(q.ShutDown)
	h := r.ofRequests()
	for n := range 3 {
		h.Create(t.Context(), event.CreateEvent{Object: named(fmt.Sprintf("r%d", n), "agent")}, q)
	}
	assert.Equal(t, -3, r.backlog.note(named("r3", "agent")))
	assert.Equal(t, -3, r.backlog.note(named("r3", "agent")), "once each")
	done := named("r0", "agent")
	done.Status.Certificate = []byte("x")
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: named("r0", "agent"), ObjectNew: done}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: named("r1", "agent")}, q)
	assert.Equal(t, -1, r.backlog.note(named("r3", "agent")))
	assert.Equal(t, 0, r.backlog.note(named("r3", "another")), "a name that is another's now")
	assert.Equal(t, 0, r.backlog.note(named("r2", "agent")))
	for _, name := range []string{"r2", "r3", "unknown"} {
		r.backlog.forget(name)
	}
	assert.Empty(t, r.backlog.requesters)
	assert.Empty(t, r.backlog.of)
}

// TestEventsAboutTheRequestsOfOneRequesterAreBounded judges many that are refused: all are counted, and there is room
// again when some are gone.
func TestEventsAboutTheRequestsOfOneRequesterAreBounded(t *testing.T) {
	const flood = maxReported + 50
	requests := make([]*certificatesv1.CertificateSigningRequest, 0, flood)
	objects := make([]client.Object, 0, flood+1)
	add := func(name, user string) *certificatesv1.CertificateSigningRequest {
		request := requestFor(t, csrs.ForCluster("c1", "a"), user)
		request.Name, request.UID = name, types.UID(name)
		objects = append(objects, request)
		return request
	}
	for n := range flood {
		requests = append(requests, add(fmt.Sprintf("flood%d", n), csrs.ClusterUser("c10", "a1")))
	}
	other := add("other", "jane")
	r, sent := newReconciler(t, objects...)
	judge := func(csr *certificatesv1.CertificateSigningRequest) {
		r.backlog.note(csr)
		_, err := r.Reconcile(t.Context(), requestOf(csr))
		require.NoError(t, err)
	}
	for range 2 {
		for _, request := range requests {
			judge(request)
		}
	}
	assert.Equal(t, map[string]int{"create event": maxReported}, sent.sent)
	judge(other)
	assert.Equal(t, map[string]int{"create event": maxReported + 1, "update approval": 1}, sent.sent,
		"another requester is told, and in the request, too: it may be the agent of the cluster that it names")

	r.backlog.forget("flood0")
	later := requests[flood-1].DeepCopy()
	later.Name, later.UID = "later", "later"
	require.NoError(t, r.Client.Create(t.Context(), withoutVersion(later)))
	judge(later)
	assert.Equal(t, maxReported+2, sent.sent["create event"], "there is room for one more when one is gone")
	var counted dto.Metric
	require.NoError(t, r.counters.refused.WithLabelValues(kindCluster, approve.ReasonRequesterNotTrusted).Write(&counted))
	assert.InDelta(t, flood+1, counted.GetCounter().GetValue(), 0, "each is counted once, told or not")
}

func withoutVersion(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr.ResourceVersion = ""
	return csr
}
