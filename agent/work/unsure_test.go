package work

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// A proxy before the hub, or its API server, answers that it does not know whether the write was done.
//
// Shows: work/slow-link
func TestAStatusWhoseAnswerIsThatNobodyKnowsIsNotSentAgainInVain(t *testing.T) {
	works := schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "manifestworks"}
	for sentence, fails := range map[string]error{
		"a proxy waited a minute":           apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "PATCH", works, "w", "<html>504", 0, true),
		"a proxy lost the API server":       apierrors.NewGenericServerResponse(http.StatusBadGateway, "PATCH", works, "w", "<html>502", 0, true),
		"the API server ended its request":  apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0),
		"etcd did not answer in time":       apierrors.NewInternalError(fmt.Errorf("etcdserver: request timed out")),
		"no answer at all, as is (control)": context.DeadlineExceeded,
	} {
		t.Run(sentence, func(t *testing.T) {
			sent := 0
			r := publishing(func(context.Context, string) error { sent++; return fails })
			defer r.queues.works.ShutDown()
			f := factsOf("w")
			f.work.ResourceVersion = "7"
			r.hubMetas = metasOf(t, f.work, "8") // it was done
			r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			f.now = f.now.Add(publishTimeout)
			r.Clock = clocktesting.NewFakePassiveClock(f.now)
			r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			assert.Equal(t, 1, sent, "the hub would refuse it for its version")
		})
	}
}

// A work is deleted and made again while its status is on its way to a hub that does not answer.
func TestOneStatusOfAWorkIsOnItsWayAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		r := publishing(func(ctx context.Context, _ string) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		})
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		r.publishers[statuses].slow.Store(true)
		// The link has carried several together before.
		f := factsOf("w")
		r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
		synctest.Wait()
		require.True(t, r.notes.of(f.owner).underway(statuses, f.work.UID))
		r.notes.Forget(f.owner) // the pass that finds that the work is gone
		again := factsOf("w")
		again.work.UID = "another"
		r.publishStatus(t.Context(), again, feedbackOf(1, metav1.ConditionTrue))
		require.True(t, r.notes.of(f.owner).underway(statuses, "another"))
		time.Sleep(publishTimeout + time.Second) // the first one ended, the second is on its way
		synctest.Wait()
		assert.Equal(t, int32(1), now.Load())
		assert.True(t, r.notes.of(f.owner).underway(statuses, "another"), "that of the new work is on its way")
	})
}
