package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReviewsWaitForTheirTurn has more clients than may be served at a time.
func TestReviewsWaitForTheirTurn(t *testing.T) {
	l := newLimits()
	var now, most, done atomic.Int64
	proceed := make(chan struct{})
	handler := l.bound(maxBody, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for n := now.Add(1); ; { // two that come at once both count
			if before := most.Load(); n <= before || most.CompareAndSwap(before, n) {
				break
			}
		}
		<-proceed
		_, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		now.Add(-1)
		done.Add(1)
	}))
	send := func(ctx context.Context, body string) int {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body)))
		return recorder.Code
	}
	var clients sync.WaitGroup
	large := strings.Repeat("x", smallBody)
	for range 12 {
		clients.Go(func() { send(t.Context(), large) })
	}
	require.Eventually(t, func() bool { return l.waiting.Load() == 12 && now.Load() == 4 }, 10*time.Second, time.Millisecond)

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	send(gone, large)
	assert.Equal(t, int64(12), l.waiting.Load(), "one whose client is gone waits no longer")

	l.waiting.Store(maxWaiting)
	assert.Equal(t, http.StatusServiceUnavailable, send(t.Context(), "{}"), "one too many")
	l.waiting.Store(12)
	close(proceed)
	clients.Wait()
	assert.Equal(t, int64(12), done.Load())
	assert.Equal(t, int64(4), most.Load())
	assert.Zero(t, l.waiting.Load())
}
