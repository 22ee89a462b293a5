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
				releaser.measure = func() heap { return heap{} }
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

func TestAReleaseIsRepeatedWhileWorkFollows(t *testing.T) {
	const mebibyte = 1 << 20
	tests := map[string]struct {
		live uint64
		// rates are what is allocated in each second of successive pauses of half a minute.
		rates    []uint64
		released int
	}{
		"a process at rest is left alone":             {10 * mebibyte, []uint64{mebibyte, 100 * mebibyte}, 1},
		"one that works is looked at again":           {10 * mebibyte, []uint64{2 * mebibyte, 2 * mebibyte, 0, 9 * mebibyte}, 3},
		"a large heap is released for much more only": {400 * mebibyte, []uint64{3 * mebibyte, 100 * mebibyte}, 1},
		"and then it is":                              {400 * mebibyte, []uint64{4 * mebibyte, 0}, 2},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := 0
				h := heap{live: tc.live}
				releaser := NewReleaser(clock.RealClock{})
				releaser.release = func() { released++ }
				releaser.measure = func() heap { return h }
				releaser.count()
				time.Sleep(quiet) // of the fake clock
				synctest.Wait()
				for _, rate := range tc.rates {
					h.allocated += rate * uint64(later/time.Second)
					time.Sleep(later)
					synctest.Wait()
				}
				assert.Equal(t, tc.released, released)
			})
		})
	}
}

func TestTheHeapIsMeasured(t *testing.T) {
	h := measure()
	assert.Positive(t, h.allocated)
	assert.GreaterOrEqual(t, h.allocated, h.live)
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
