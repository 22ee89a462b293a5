package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestOnlyARowOf401IsARefusal(t *testing.T) {
	type answer struct {
		after  time.Duration
		status int
	}
	const ok, unauthorized, forbidden, broken = 200, 401, 403, 503
	tests := map[string]struct {
		answers        []answer
		refused, taken int
	}{
		"one alone is none":                      {[]answer{{0, unauthorized}}, 0, 0},
		"a row that is too short is none":        {[]answer{{0, unauthorized}, {59 * time.Second, unauthorized}}, 0, 0},
		"one after the time is":                  {[]answer{{0, unauthorized}, {time.Minute, unauthorized}}, 1, 0},
		"silence is not, but the next 401 is":    {[]answer{{0, unauthorized}, {time.Hour, unauthorized}}, 1, 0},
		"another answer ends the row":            {[]answer{{0, unauthorized}, {time.Second, ok}, {time.Minute, unauthorized}}, 0, 0},
		"403 is no 401":                          {[]answer{{0, forbidden}, {time.Hour, forbidden}}, 0, 0},
		"403 ends the row, as it knows who asks": {[]answer{{0, unauthorized}, {time.Second, forbidden}, {time.Minute, unauthorized}}, 0, 0},
		"a hub that is broken says nothing":      {[]answer{{0, unauthorized}, {time.Second, broken}, {time.Minute, unauthorized}}, 1, 0},
		"each further one is told":               {[]answer{{0, unauthorized}, {time.Minute, unauthorized}, {time.Second, unauthorized}}, 2, 0},
		"an end after it was told is told":       {[]answer{{0, unauthorized}, {time.Minute, unauthorized}, {time.Second, ok}, {time.Second, ok}}, 1, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			began := now.Now()
			var refused, taken int
			a := &answers{clock: now, patience: time.Minute, taken: func() { taken++ }, refused: func(since time.Time) {
				assert.Equal(t, began, since)
				refused++
			}}
			for _, one := range tc.answers {
				now.SetTime(now.Now().Add(one.after))
				a.note(one.status)
			}
			assert.Equal(t, tc.refused, refused, "refused")
			assert.Equal(t, tc.taken, taken, "taken")
		})
	}
}

func TestANewCertificateBeginsANewRow(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	a := &answers{clock: now, patience: time.Minute, refused: func(time.Time) { assert.Fail(t, "refused") }}
	a.note(401)
	now.SetTime(now.Now().Add(50 * time.Second))
	a.reset()
	a.note(401)
	now.SetTime(now.Now().Add(50 * time.Second))
	a.note(401)
}

func TestTheWatchHearsAHubThatWorks(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	heard := 0
	a := &answers{clock: clock.RealClock{}, heard: func() { heard++ }}
	client := &http.Client{Transport: a.wrap(http.DefaultTransport)}
	for _, tc := range []struct{ status, want int }{{200, 1}, {401, 1}, {403, 1}, {500, 0}, {503, 0}} {
		status, heard = tc.status, 0
		get(t, client, server)
		assert.Equal(t, tc.want, heard, "%d", tc.status)
	}
}

func get(t *testing.T, client *http.Client, server *httptest.Server) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
}

// Row: hub_timeout_controller_test.go:14
// Row: hub_timeout_controller_test.go:68
func TestSilenceIsNoticedAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var over []time.Time
		s := newSilence(clock.RealClock{}, time.Minute, func(since time.Time) { over = append(over, since) })
		ended := make(chan error, 1)
		go func() { ended <- s.Start(t.Context()) }()
		time.Sleep(50 * time.Second) // of the fake clock
		s.heard()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		assert.Empty(t, over)
		time.Sleep(time.Second)
		require.NoError(t, <-ended)
		assert.Equal(t, []time.Time{began.Add(50 * time.Second)}, over)
		assert.Equal(t, began.Add(110*time.Second), time.Now())
	})
}

func TestOnlyAClearAnswerShowsThatTheHubKnowsWhoAsks(t *testing.T) {
	for status, want := range map[int]bool{200: true, 403: true, 404: true, 401: false, 429: false, 500: false, 503: false, 302: false} {
		assert.Equal(t, want, recognized(status), "%d", status)
	}
}

func TestTroubleWithTheBootstrapCredentialIsNamed(t *testing.T) {
	tests := map[string]struct {
		method string
		status int
		want   string
	}{
		"a credential that is not known":               {http.MethodGet, 401, "hub https://hub answers 401 Unauthorized to the bootstrap credential"},
		"a right that is missing":                      {http.MethodGet, 403, "hub https://hub answers 403 Forbidden to GET /x with the bootstrap credential"},
		"a hub that is broken":                         {http.MethodPost, 503, "hub https://hub answers 503 Service Unavailable to the bootstrap credential"},
		"that it may not update a ManagedCluster":      {http.MethodPut, 403, ""},
		"that a ManagedCluster does not exist yet":     {http.MethodGet, 404, ""},
		"that a ManagedCluster exists meanwhile":       {http.MethodPost, 409, ""},
		"a watch or anything else that goes well does": {http.MethodGet, 200, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), tc.method, "https://hub/x", nil)
			assert.Equal(t, tc.want, troubleOf("https://hub", request, tc.status))
		})
	}
}
