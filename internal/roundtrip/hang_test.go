package roundtrip

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangs is a watch that shows an event after some time, and then hangs for ever.
type hangs struct {
	// wait waits while the request goes on.
	wait  func(time.Duration) error
	after time.Duration
	shown bool
}

func (h *hangs) Read(into []byte) (int, error) {
	d := forever
	if !h.shown {
		d, h.shown = h.after, true
	}
	if err := h.wait(d); err != nil {
		return 0, err
	}
	return copy(into, "x"), nil
}

// docs/reference/work.md: "a request that makes no progress [...] given up after 90 seconds; a watch 90 seconds after the
// time it asked for".
//
// Shows: work/silent-request
func TestAWatchThatHangsIsGivenUp90SecondsAfterTheTimeItAskedFor(t *testing.T) {
	for name, shown := range map[string]time.Duration{
		"it shows an event at once": time.Second, "it shows an event late": 590 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
					"http://server/?watch=1&timeoutSeconds=600", http.NoBody)
				require.NoError(t, err)
				began := time.Now()
				response, err := Bound(Silence)(Func(func(r *http.Request) (*http.Response, error) {
					within := func(d time.Duration) error { return wait(r.Context(), d) }
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&hangs{wait: within, after: shown})}, nil
				})).RoundTrip(request)
				require.NoError(t, err)
				defer func() { _ = response.Body.Close() }()
				_, err = io.ReadAll(response.Body)
				require.ErrorIs(t, err, errSilent)
				assert.LessOrEqual(t, time.Since(began), 600*time.Second+Silence)
			})
		})
	}
}
