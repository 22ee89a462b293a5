package memory

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

func TestMemoryIsReleasedAfterABurst(t *testing.T) {
	type step struct {
		requests int
		pause    time.Duration
	}
	tests := map[string]struct {
		steps    []step
		released int
	}{
		"the start is a burst, however small":       {[]step{{3, quiet}}, 1},
		"not before it is quiet":                    {[]step{{3, quiet - time.Millisecond}}, 0},
		"requests that go on put it off":            {[]step{{1, quiet / 2}, {1, quiet / 2}, {1, quiet / 2}, {1, quiet / 2}}, 0},
		"once for each burst":                       {[]step{{1, quiet}, {0, time.Hour}, {burst, quiet}, {0, time.Hour}}, 2},
		"what is sent at rest is none for long":     {[]step{{1, quiet}, {1, time.Minute}, {burst - 2, time.Hour}}, 1},
		"an agent that sends nothing is not woken":  {[]step{{0, 24 * time.Hour}}, 0},
		"a burst is counted from the last one only": {[]step{{burst + 50, quiet}, {burst - 1, time.Hour}}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := 0
				releaser := NewReleaser(clock.RealClock{})
				releaser.release = func() { released++ }
				for _, s := range tc.steps {
					for range s.requests {
						releaser.count()
					}
					time.Sleep(s.pause) // of the fake clock
					synctest.Wait()
				}
				assert.Equal(t, tc.released, released)
			})
		})
	}
}

func TestRequestsOfEveryTransportAreCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	outer := 0
	releaser := NewReleaser(clock.RealClock{})
	releaser.release = func() {}
	for _, wrap := range []func(http.RoundTripper) http.RoundTripper{
		roundtrip.Chain(releaser.Wrap, nil),
		roundtrip.Chain(releaser.Wrap, func(next http.RoundTripper) http.RoundTripper {
			return roundtrip.Func(func(r *http.Request) (*http.Response, error) { outer++; return next.RoundTrip(r) })
		}),
	} {
		answer, err := (&http.Client{Transport: wrap(http.DefaultTransport)}).Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusNotFound, answer.StatusCode)
	}
	assert.Equal(t, burst+1, releaser.requests)
	assert.Equal(t, 1, outer)
}
