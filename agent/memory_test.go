package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

func TestMemoryIsGivenBackAfterABurst(t *testing.T) {
	type step struct {
		requests int
		pause    time.Duration
	}
	tests := map[string]struct {
		steps []step
		given int
	}{
		"the start is a burst, however small":       {[]step{{3, calm}}, 1},
		"not before it is calm":                     {[]step{{3, calm - time.Millisecond}}, 0},
		"requests that go on put it off":            {[]step{{1, calm / 2}, {1, calm / 2}, {1, calm / 2}, {1, calm / 2}}, 0},
		"once for each burst":                       {[]step{{1, calm}, {0, time.Hour}, {burst, calm}, {0, time.Hour}}, 2},
		"what is sent at rest is none for long":     {[]step{{1, calm}, {1, time.Minute}, {burst - 2, time.Hour}}, 1},
		"an agent that sends nothing is not woken":  {[]step{{0, 24 * time.Hour}}, 0},
		"a burst is counted from the last one only": {[]step{{burst + 50, calm}, {burst - 1, time.Hour}}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				given := 0
				saver := newThrift(clock.RealClock{}, func() { given++ })
				for _, s := range tc.steps {
					for range s.requests {
						saver.worked()
					}
					time.Sleep(s.pause) // of the fake clock
					synctest.Wait()
				}
				assert.Equal(t, tc.given, given)
			})
		})
	}
}

func TestRequestsOfEveryTransportAreCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	outer := 0
	saver := newThrift(clock.RealClock{}, func() {})
	for _, wrap := range []func(http.RoundTripper) http.RoundTripper{
		chain(saver.wrap, nil),
		chain(saver.wrap, func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { outer++; return next.RoundTrip(r) })
		}),
	} {
		answer, err := (&http.Client{Transport: wrap(http.DefaultTransport)}).Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusNotFound, answer.StatusCode)
	}
	assert.Equal(t, burst+1, saver.requests)
	assert.Equal(t, 1, outer)
}

func TestPagesOfTheProgram(t *testing.T) {
	const smaps = `00400000-01710000 r-xp 00000000 fe:00 10682599                           /usr/bin/spokelet
Size:              19520 kB
Rss:               14908 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01710000-02a9e000 r--p 01310000 fe:00 10682599                           /usr/bin/spokelet
Rss:               15288 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
02a9e000-02b39000 rw-p 0269e000 fe:00 10682599                           /usr/bin/spokelet
Rss:                 620 kB
Anonymous:           148 kB
02b39000-04b87000 rw-p 00000000 00:00 0
Anonymous:           156 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77                         /usr/lib/with a breakpoint.so
Anonymous:             4 kB
7f0000002000-7f0000003000 r--p 00000000 fe:00 78                         /usr/lib/with blanks in it.so
Anonymous:             0 kB
7ffc0e5f2000-7ffc0e5f4000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	got, err := programSpans(strings.NewReader(smaps))
	require.NoError(t, err)
	assert.Equal(t, []span{{0x400000, 0x1710000}, {0x1710000, 0x2a9e000}, {0x7f0000002000, 0x7f0000003000}}, got)

	for name, head := range map[string]string{
		"no number": "xyz-01710000 r-xp 00000000 fe:00 10682599 /usr/bin/spokelet",
		"no end":    "00400000 r-xp 00000000 fe:00 10682599 /usr/bin/spokelet",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := programSpans(strings.NewReader(head + "\n"))
			assert.ErrorContains(t, err, "reading the addresses")
		})
	}
}
