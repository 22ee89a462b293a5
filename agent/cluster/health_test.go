package cluster

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// apiServer answers each path with a status code and body and counts what it is asked.
type apiServer struct {
	mu      sync.Mutex
	codes   map[string]int
	asked   map[string]int
	version string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	if code := s.codes[r.URL.Path]; code != 0 {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(r.URL.Path + " says no\n"))
		return
	}
	if r.URL.Path == "/version" {
		_, _ = w.Write([]byte(`{"gitVersion":"` + s.version + `"}`))
	}
}

func (s *apiServer) set(path string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[path] = code
}

// probed returns a Health whose API server is s, and a function that sends another observed request.
func probed(t *testing.T, s *apiServer) (*Health, func(path string)) {
	t.Helper()
	s.codes, s.asked = map[string]int{}, map[string]int{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	failures := &FailureDetector{}
	client := server.Client()
	client.Transport = failures.Wrap(client.Transport)
	return &Health{Client: client, Server: address, Failures: failures}, func(path string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		require.NoError(t, answer.Body.Close())
		if path == breakConnection {
			server.CloseClientConnections()
		}
	}
}

// breakConnection is a path after which the server cuts all connections.
const breakConnection = "/break"

func TestHealthAtRestProbesOnce(t *testing.T) {
	s := &apiServer{version: "v1.35.4"}
	h, _ := probed(t, s)
	got, next := h.observe(t.Context(), noon)
	assert.Equal(t, health{probedAt: noon, version: "v1.35.4"}, got)
	assert.True(t, next.IsZero())
	for i := range 100 {
		_, next = h.observe(t.Context(), noon.Add(time.Duration(i)*time.Minute))
		require.True(t, next.IsZero())
	}
	assert.Equal(t, map[string]int{"/livez": 1, "/version": 1}, s.asked)
}

// Shows: registration/apiserver-may-fail
func TestARejectedCredentialIsExplained(t *testing.T) {
	assert.Equal(t, "status code: 401, Unauthorized; the credential of the agent is not accepted: it expired, was revoked, "+
		"or is one of another cluster", detail(http.StatusUnauthorized, []byte("Unauthorized\n"), nil))
	assert.Equal(t, "status code: 0, connection refused", detail(0, nil, errors.New("connection refused")))
}

func TestHealthFallsBackToHealthz(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden} {
		s := &apiServer{version: "v1.20.0"}
		h, _ := probed(t, s)
		s.set("/livez", code)
		got, _ := h.observe(t.Context(), noon)
		assert.True(t, got.failingSince.IsZero())
		assert.Equal(t, 1, s.asked["/healthz"])
	}
}

// Shows: registration/apiserver-may-fail
func TestHealthProbesAfterADisturbanceUntilItIsOver(t *testing.T) {
	s := &apiServer{version: "v1.35.4"}
	h, ask := probed(t, s)
	h.observe(t.Context(), noon)

	s.set("/api/v1/nodes", http.StatusInternalServerError)
	s.set("/livez", http.StatusInternalServerError)
	ask("/api/v1/nodes")
	got, next := h.observe(t.Context(), noon.Add(minProbeInterval/2))
	assert.True(t, got.failingSince.IsZero(), "too soon after the last probe")
	assert.Equal(t, noon.Add(minProbeInterval), next, "but it is not forgotten")

	at := noon.Add(time.Minute)
	got, next = h.observe(t.Context(), at)
	assert.Equal(t, at, got.failingSince)
	assert.Equal(t, "status code: 500, /livez says no", got.detail)
	assert.Equal(t, "v1.35.4", got.version, "a version does not get lost")
	assert.Equal(t, at.Add(probeInterval), next)

	later := at.Add(probeInterval)
	got, _ = h.observe(t.Context(), later)
	assert.Equal(t, at, got.failingSince, "the row of failures is unbroken")
	assert.Equal(t, later, got.probedAt)

	s.set("/livez", 0)
	got, next = h.observe(t.Context(), later.Add(probeInterval))
	assert.True(t, got.failingSince.IsZero())
	assert.True(t, next.IsZero(), "all is well again, nothing more to ask: %s", next)

	s.set("/livez", http.StatusInternalServerError)
	ask("/api/v1/nodes")
	again := later.Add(time.Hour)
	got, _ = h.observe(t.Context(), again)
	assert.Equal(t, again, got.failingSince, "the former row of failures is over")
}

func TestTheFailureDetectorKnowsASuspectRequest(t *testing.T) {
	tests := map[string]struct {
		code int
		err  error
		want bool
	}{
		"an answer":                   {code: http.StatusOK},
		"a refusal is no disturbance": {code: http.StatusForbidden},
		"a conflict":                  {code: http.StatusConflict},
		"a rejected credential":       {code: http.StatusUnauthorized, want: true},
		"an error of the server":      {code: http.StatusInternalServerError, want: true},
		"an overloaded server":        {code: http.StatusServiceUnavailable, want: true},
		"no connection":               {err: errors.New("connection refused"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			failures := &FailureDetector{}
			transport := failures.Wrap(roundtrip.Func(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: tc.code, Body: http.NoBody}, tc.err
			}))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			answer, err := transport.RoundTrip(request)
			require.ErrorIs(t, err, tc.err)
			require.NoError(t, answer.Body.Close())
			assert.Equal(t, tc.want, failures.take())
			assert.False(t, failures.take(), "it is told once")

			answer, err = transport.RoundTrip(request.WithContext(asProbe(t.Context())))
			require.ErrorIs(t, err, tc.err)
			require.NoError(t, answer.Body.Close())
			assert.False(t, failures.take(), "a probe is no disturbance itself")
		})
	}
}

func TestTheFailureDetectorNoticesANewConnection(t *testing.T) {
	s := &apiServer{}
	h, ask := probed(t, s)
	ask("/api")
	assert.False(t, h.Failures.take(), "the first connection is none")
	ask(breakConnection)
	assert.False(t, h.Failures.take(), "nor is one that is used again")
	ask("/api")
	assert.True(t, h.Failures.take())
}

// Shows: registration/hosted-probe
func TestHealthThatNothingElseShowsIsProbedNowAndThen(t *testing.T) {
	s := &apiServer{version: "v1.35.4"}
	h, _ := probed(t, s)
	h.Every = time.Minute
	_, next := h.observe(t.Context(), noon)
	assert.Equal(t, noon.Add(time.Minute), next)
	s.set("/livez", http.StatusInternalServerError) // and no other request fails: watches live on
	got, _ := h.observe(t.Context(), noon.Add(time.Minute-1))
	assert.True(t, got.healthy())
	got, next = h.observe(t.Context(), noon.Add(time.Minute))
	assert.False(t, got.healthy())
	assert.Equal(t, noon.Add(time.Minute+probeInterval), next)
}
