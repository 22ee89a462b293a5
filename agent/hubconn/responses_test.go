package hubconn

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestOnlyARunOf401IsARejection(t *testing.T) {
	type response struct {
		after  time.Duration
		status int
	}
	const ok, unauthorized, forbidden, broken = 200, 401, 403, 503
	tests := map[string]struct {
		responses          []response
		rejected, accepted int
	}{
		"one alone is none":                      {[]response{{0, unauthorized}}, 0, 0},
		"a run that is too short is none":        {[]response{{0, unauthorized}, {59 * time.Second, unauthorized}}, 0, 0},
		"one after the time is":                  {[]response{{0, unauthorized}, {time.Minute, unauthorized}}, 1, 0},
		"silence is not, but the next 401 is":    {[]response{{0, unauthorized}, {time.Hour, unauthorized}}, 1, 0},
		"another answer ends the run":            {[]response{{0, unauthorized}, {time.Second, ok}, {time.Minute, unauthorized}}, 0, 0},
		"403 is no 401":                          {[]response{{0, forbidden}, {time.Hour, forbidden}}, 0, 0},
		"403 ends the run, as it knows who asks": {[]response{{0, unauthorized}, {time.Second, forbidden}, {time.Minute, unauthorized}}, 0, 0},
		"a hub that is broken says nothing":      {[]response{{0, unauthorized}, {time.Second, broken}, {time.Minute, unauthorized}}, 1, 0},
		"each further one is told":               {[]response{{0, unauthorized}, {time.Minute, unauthorized}, {time.Second, unauthorized}}, 2, 0},
		"an end after it was told is told":       {[]response{{0, unauthorized}, {time.Minute, unauthorized}, {time.Second, ok}, {time.Second, ok}}, 1, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			began := now.Now()
			var rejected, accepted int
			r := &Responses{Clock: now, UnauthorizedAfter: time.Minute, Accepted: func() { accepted++ }, Rejected: func(since time.Time) {
				assert.Equal(t, began, since)
				rejected++
			}}
			for _, one := range tc.responses {
				now.SetTime(now.Now().Add(one.after))
				r.observe(one.status)
			}
			assert.Equal(t, tc.rejected, rejected, "rejected")
			assert.Equal(t, tc.accepted, accepted, "accepted")
		})
	}
}

func TestANewCertificateBeginsANewRun(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	r := &Responses{Clock: now, UnauthorizedAfter: time.Minute, Rejected: func(time.Time) { assert.Fail(t, "rejected") }}
	r.observe(401)
	now.SetTime(now.Now().Add(50 * time.Second))
	r.reset()
	r.observe(401)
	now.SetTime(now.Now().Add(50 * time.Second))
	r.observe(401)
}

func TestAHubThatWorksHasAnswered(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	answered := 0
	r := &Responses{Clock: clock.RealClock{}, Answered: func() { answered++ }}
	client := &http.Client{Transport: r.Wrap(http.DefaultTransport)}
	for _, tc := range []struct{ status, want int }{{200, 1}, {401, 1}, {403, 1}, {500, 0}, {503, 0}} {
		status, answered = tc.status, 0
		send(t, client, server)
		assert.Equal(t, tc.want, answered, "%d", tc.status)
	}
}

func send(t *testing.T, client *http.Client, server *httptest.Server) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
}
