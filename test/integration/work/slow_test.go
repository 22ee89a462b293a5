package work_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// TestTenWorksReachAHubBehindALinkOf64Kbit measures what ten works with large statuses cost a slow link: the link alone
// needs longer for each status than the agent waits for a hub, and longer for all than for one that is cut off.
//
// Shows: work/slow-link
func TestTenWorksReachAHubBehindALinkOf64Kbit(t *testing.T) {
	t.Parallel()
	const works, manifests, packet = 10, 10, 1400
	const large, value = 5, 16 << 10
	const rate, delay = 64_000 / 8, 100 * time.Millisecond // and the same way back
	e := newEnv(t)
	link, err := sandbox.NewLink(e.settings.hub.Host)
	require.NoError(t, err)
	t.Cleanup(link.Close)
	link.Slow(rate, delay)
	e.settings.hub = rest.CopyConfig(e.settings.hub)
	e.settings.hub.Host = link.Host
	for i := range large { // a value of each is in every status, and not in the works, which take the same link
		e.create(e.configMap(fmt.Sprint("large", i), map[string]string{"k": strings.Repeat("x", value)}))
	}
	for i := range works {
		list := make([]any, manifests, manifests+large)
		for j := range list {
			list[j] = e.configMap(fmt.Sprintf("m%d-%d", i, j), nil)
		}
		for j := range large {
			list = append(list, e.configMap(fmt.Sprint("large", j), nil))
		}
		w := e.work(fmt.Sprint("w", i), list...)
		for name, strategy := range map[string]workv1.UpdateStrategyType{
			"m0-0": workv1.UpdateStrategyTypeCreateOnly, "large*": workv1.UpdateStrategyTypeReadOnly,
		} {
			w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
				ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: e.cluster, Name: name},
				UpdateStrategy:     &workv1.UpdateStrategy{Type: strategy},
				FeedbackRules: []workv1.FeedbackRule{{
					Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "k", Path: ".data.k"}},
				}},
			})
		}
		e.create(w)
	}
	began := time.Now()
	var mu sync.Mutex
	var requests []string // to the hub, for the message of a failure
	e.settings.hubFault = func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, fmt.Sprintf("%s %s %s, %d bytes", time.Since(began).Round(time.Second), r.Method, r.URL.Path,
			r.ContentLength))
		return nil
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("requests:\n%s", strings.Join(requests, "\n"))
		}
	})
	e.start()
	size := 0
	for i := range works {
		w := &workv1.ManifestWork{}
		suite.Within(t, 5*time.Minute, suite.True("the status must reach the hub", func() bool {
			key := client.ObjectKey{Namespace: e.cluster, Name: fmt.Sprint("w", i)}
			return e.Get(t.Context(), key, w) == nil &&
				meta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkAvailable)
		}))
		status, err := json.Marshal(w.Status)
		require.NoError(t, err)
		size += len(status)
	}
	sent := link.Sent()
	t.Logf("%d works with statuses of %d bytes in all: %d bytes sent in %s", works, size, sent, time.Since(began))
	assert.Less(t, sent, int64(size*5/4), "no status is cut off on its way and sent again")

	// The feedback of one object changes, and only that is sent.
	var before int64
	var since time.Time
	suite.Within(t, 5*time.Minute, suite.True("the link must be quiet", func() bool {
		if now := link.Sent(); now-before > packet { // what is received is confirmed meanwhile
			before, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second
	}))
	before = link.Sent()
	moved := e.configMap("m0-0", map[string]string{"k": "moved"})
	require.NoError(t, e.Update(t.Context(), moved))
	suite.Within(t, 5*time.Minute, suite.True("the value must reach the hub", func() bool {
		w := &workv1.ManifestWork{}
		if e.Get(t.Context(), client.ObjectKey{Namespace: e.cluster, Name: "w0"}, w) != nil {
			return false
		}
		values := w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
		return len(values) == 1 && *values[0].Value.String == "moved"
	}))
	change := link.Sent() - before
	t.Logf("one value, after %s: %d bytes sent", time.Since(began), change)
	assert.Less(t, change, int64(size/works/4), "the rest of the status stays")
}
