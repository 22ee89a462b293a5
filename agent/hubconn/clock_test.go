package hubconn

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/csr/issue"
)

func TestMeasureAhead(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		sent, took time.Duration // against the date
		before     time.Duration
		want       time.Duration
	}{
		"clocks that agree":                        {sent: 300 * time.Millisecond, took: 50 * time.Millisecond},
		"clocks that agree, at a slow answer":      {sent: -20 * time.Second, took: 30 * time.Second},
		"an hour ahead":                            {sent: time.Hour, took: 10 * time.Millisecond, want: time.Hour - time.Second},
		"an hour behind":                           {sent: -time.Hour, took: 10 * time.Millisecond, want: 10*time.Millisecond - time.Hour},
		"what was measured stays while it may be":  {sent: time.Hour, before: time.Hour - 300*time.Millisecond, want: time.Hour - 300*time.Millisecond},
		"a clock that was set right is right":      {sent: 300 * time.Millisecond, before: time.Hour},
		"a clock that was set wrong again is told": {sent: time.Hour, before: 2 * time.Hour, want: time.Hour - time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			sent := noon.Add(tc.sent)
			assert.Equal(t, tc.want, measureAhead(noon, sent, sent.Add(tc.took), tc.before))
		})
	}
}

// Shows: registration/hub-time
func TestTheAnswersOfTheHubTellItsTime(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	wrong := clocktesting.NewFakePassiveClock(clock.RealClock{}.Now().Add(25 * time.Hour))
	h := NewClock(wrong)
	assert.False(t, h.IsKnown())
	assert.Equal(t, wrong.Now(), h.Now())
	answer, err := (&http.Client{Transport: h.Wrap(http.DefaultTransport)}).Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.True(t, h.IsKnown())
	assert.InDelta(t, 25*time.Hour, h.Ahead(), float64(5*time.Second))
	assert.WithinDuration(t, clock.RealClock{}.Now(), h.Now(), 5*time.Second)

	h.observe("no date", wrong.Now(), wrong.Now())
	assert.InDelta(t, 25*time.Hour, h.Ahead(), float64(5*time.Second), "what says nothing changes nothing")
}

func TestAStoredCertificateThatLooksExpiredIsJudgedByTheTimeOfTheHub(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		asked++
		answer.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	hub := issue.HubServer{Cluster: "hub", Server: server.URL, CAData: ca}
	pair := pairFor(t, "stored")
	fast := fastClock{by: 24 * 365 * time.Hour}
	a := NewClock(fast)

	a.Query(t.Context(), hub, issue.Pair{}, nil)
	assert.Zero(t, asked, "there is no certificate")
	a.Query(t.Context(), hub, pair, nil)
	a.Query(t.Context(), hub, pair, nil)
	assert.Equal(t, 1, asked)
	assert.WithinDuration(t, clock.RealClock{}.Now(), a.Now(), 5*time.Second)

	right := NewClock(clock.RealClock{})
	right.Query(t.Context(), hub, pair, nil)
	assert.Equal(t, 1, asked, "a certificate that is good is no reason to ask")
}

// fastClock is ahead of the clock of the machine.
type fastClock struct {
	clock.RealClock
	by time.Duration
}

func (c fastClock) Now() time.Time { return c.RealClock.Now().Add(c.by) }

// Shows: registration/hub-time
func TestAProxyDoesNotTellTheTimeOfTheHub(t *testing.T) {
	for status, known := range map[int]bool{
		http.StatusBadGateway: false, http.StatusServiceUnavailable: false, http.StatusGatewayTimeout: false,
		http.StatusOK: true, http.StatusForbidden: true, http.StatusInternalServerError: true,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		h := NewClock(clocktesting.NewFakePassiveClock(time.Now().AddDate(-1, 0, 0)))
		answer, err := (&http.Client{Transport: h.Wrap(http.DefaultTransport)}).Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, known, h.IsKnown(), status)
		server.Close()
	}
}
