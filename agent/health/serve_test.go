package health

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/test/sandbox"
)

// ask asks the endpoints of s.
func ask(t *testing.T, s *State, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.RemoteAddr = "127.0.0.1:1"
	s.Handler().ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

func TestHealthTellsWhatTheAgentIsDoing(t *testing.T) {
	var s State
	code, _ := ask(t, &s, "/healthz")
	assert.Equal(t, http.StatusOK, code)
	code, _ = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	s.Set("waiting for the hub: it is away")
	code, text := ask(t, &s, "/healthz")
	assert.Equal(t, http.StatusOK, code, "a restart would not bring the hub back")
	assert.Contains(t, text, "it is away")
	s.StandBy("waiting to lead: Lease a/b is held by c")
	code, text = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code, "else a new pod would never take the place of an old one")
	assert.Contains(t, text, "is held by c")
	s.Set(Ready)
	code, _ = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code)
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "no credential for a hub")
}

// hub is one whose outage the test sets.
type hub struct{ outage string }

func (h *hub) Outage() string { return h.outage }

func (*hub) Since() time.Time { return time.Time{} }

func (h *hub) Explains(error) bool { return h.outage != "" }

// Shows: work/missing-held
func TestWhatIsSaidBesidesFailsNoProbe(t *testing.T) {
	var s State
	s.Set(Ready)
	s.Note("works", "12 are missing")
	s.Note("heartbeat", "it is not taken")
	code, text := ask(t, &s, "/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]agent serving\n[!]heartbeat it is not taken\n[!]works 12 are missing\n", text)
	s.Note("works", "")
	_, text = ask(t, &s, "/readyz?verbose")
	assert.NotContains(t, text, "[!]works")
	code, _ = ask(t, &s, "/healthz")
	assert.Equal(t, http.StatusOK, code)
}

func TestReadinessNamesAHubThatDoesNotAnswer(t *testing.T) {
	var hub hub
	var s State
	s.Set(Ready)
	s.Follow(&hub)
	code, text := ask(t, &s, "/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]agent serving\n[+]hub ok\n", text)

	hub.outage = "hub https://hub.example.com:6443 does not answer since 2026-01-02T03:04:05Z: connection refused"
	code, text = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code, "the agent goes on with what needs no hub")
	assert.Equal(t, "serving\n"+hub.outage+"\n", text)
	code, text = ask(t, &s, "/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]agent serving\n[-]hub "+hub.outage+"\n", text)
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, hub.outage+"\n", text)

	hub.outage = ""
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "ok\n", text)
}

func TestReadinessNamesWhatElseCannotBeUsed(t *testing.T) {
	for check, tc := range map[string]struct {
		follow  func(*State, *hub)
		because string
	}{
		"managed-cluster":  {func(s *State, h *hub) { s.FollowSpoke(h) }, "a restart would not bring the managed cluster back"},
		"account-of-works": {func(s *State, h *hub) { s.FollowAccount(h) }, "a restart would not bring the right back"},
	} {
		t.Run(check, func(t *testing.T) {
			var home, elsewhere hub
			var s State
			s.Set(Ready)
			s.Follow(&home)
			tc.follow(&s, &elsewhere)
			_, text := ask(t, &s, "/readyz?verbose")
			assert.Equal(t, "[+]agent serving\n[+]hub ok\n[+]"+check+" ok\n", text)

			elsewhere.outage = "cannot be used since 2026-01-02T03:04:05Z: forbidden"
			code, text := ask(t, &s, "/readyz")
			assert.Equal(t, http.StatusOK, code, tc.because)
			assert.Equal(t, "serving\n"+elsewhere.outage+"\n", text)
			_, text = ask(t, &s, "/readyz?verbose")
			assert.Equal(t, "[+]agent serving\n[+]hub ok\n[-]"+check+" "+elsewhere.outage+"\n", text)
			code, _ = ask(t, &s, "/readyz/hub")
			assert.Equal(t, http.StatusOK, code)
			assert.Equal(t, check == "managed-cluster", s.Explains(assert.AnError))
		})
	}
	var s State
	s.Set(Ready)
	s.FollowAccount(&hub{})
	s.FollowAccount(nil)
	_, text := ask(t, &s, "/readyz?verbose")
	assert.Equal(t, "[+]agent serving\n", text)
}

// serveHealth serves health as a configuration says, and returns its URL.
func serveHealth(t *testing.T, change func(o *TLSOptions)) string {
	t.Helper()
	ports, err := sandbox.FreePorts(1)
	require.NoError(t, err)
	options := TLSOptions{Port: ports[0]}
	change(&options)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var s State
	go func() { ended <- s.ServeTLS(ctx, options, clock.RealClock{}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return "https://127.0.0.1:" + strconv.Itoa(ports[0])
}

// probeHealth does what a kubelet does, with the TLS of a client.
func probeHealth(t *testing.T, address string, with *tls.Config) (int, *tls.ConnectionState, error) {
	t.Helper()
	with.InsecureSkipVerify = true // as a kubelet
	transport := &http.Transport{TLSClientConfig: with}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/healthz", nil)
	require.NoError(t, err)
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.TLS, err
}

func TestHealthIsServedOverHTTPSAsTheFlagsSay(t *testing.T) {
	const rsaSuite, ecdsaSuite = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	tests := map[string]struct {
		change func(o *TLSOptions)
		client *tls.Config
		suite  uint16
		fails  bool
	}{
		"as a kubelet probes": {change: func(*TLSOptions) {}, client: &tls.Config{}},
		"TLS 1.2 by default":  {change: func(*TLSOptions) {}, client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"nothing below":       {change: func(*TLSOptions) {}, client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, fails: true},
		"TLS 1.3 where it is required": {
			change: func(o *TLSOptions) { o.TLS.MinVersion = "VersionTLS13" }, client: &tls.Config{},
		},
		"and nothing below it then": {
			change: func(o *TLSOptions) { o.TLS.MinVersion = "VersionTLS13" },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, fails: true,
		},
		"the only cipher suite": {
			change: func(o *TLSOptions) { o.TLS.CipherSuites = []string{ecdsaSuite} },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, suite: tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		},
		"the only cipher suite, which needs an RSA key": {
			change: func(o *TLSOptions) { o.TLS.CipherSuites = []string{rsaSuite} },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, suite: tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		},
		"no other cipher suite": {
			change: func(o *TLSOptions) { o.TLS.CipherSuites = []string{ecdsaSuite} },
			client: &tls.Config{
				MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
			},
			fails: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			address := serveHealth(t, tc.change)
			var code int
			var state *tls.ConnectionState
			var err error
			require.Eventually(t, func() bool {
				code, state, err = probeHealth(t, address, tc.client.Clone())
				return !errors.Is(err, syscall.ECONNREFUSED)
			}, time.Minute, 10*time.Millisecond, "it answers")
			if tc.fails {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, code)
			if tc.suite != 0 {
				assert.Equal(t, tc.suite, state.CipherSuite)
			}
			assert.True(t, state.PeerCertificates[0].NotAfter.After(time.Now().AddDate(9, 0, 0)), "it outlives the process")
		})
	}
}

func TestHealthIsNotServedOverHTTPSUnlessAsked(t *testing.T) {
	var s State
	for _, options := range []TLSOptions{{}, {Address: "0", Port: 1}} {
		require.NoError(t, s.ServeTLS(t.Context(), options, clock.RealClock{}))
	}
	require.ErrorContains(t, s.ServeTLS(t.Context(), TLSOptions{Address: "nowhere"}, clock.RealClock{}), "--listen: ")
}
