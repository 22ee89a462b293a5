package agent

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/test/sandbox"
)

// ask asks the endpoints of s.
func ask(t *testing.T, s *state, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func TestHealthTellsWhatTheAgentIsDoing(t *testing.T) {
	var s state
	code, _ := ask(t, &s, "/healthz")
	assert.Equal(t, http.StatusOK, code)
	code, _ = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	s.set("waiting for the hub: it is away")
	code, text := ask(t, &s, "/healthz")
	assert.Equal(t, http.StatusOK, code, "a restart would not bring the hub back")
	assert.Contains(t, text, "it is away")
	s.standBy("waiting to lead: Lease a/b is held by c")
	code, text = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code, "else a new pod would never take the place of an old one")
	assert.Contains(t, text, "is held by c")
	s.set(ready)
	code, _ = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code)
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "no credential for a hub")
}

func TestReadinessNamesAHubThatDoesNotAnswer(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	hub := newReach(now, logr.Discard(), "https://hub.example.com:6443")
	var s state
	s.set(ready)
	s.follow(hub)
	code, text := ask(t, &s, "/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]agent serving\n[+]hub ok\n", text)

	hub.failed("connection refused")
	now.Step(reachAfter)
	const silence = "hub https://hub.example.com:6443 does not answer since 2026-01-02T03:04:05Z: connection refused\n"
	code, text = ask(t, &s, "/readyz")
	assert.Equal(t, http.StatusOK, code, "the agent goes on with what needs no hub")
	assert.Equal(t, "serving\n"+silence, text)
	code, text = ask(t, &s, "/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]agent serving\n[-]hub "+silence, text)
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, silence, text)

	hub.answered()
	code, text = ask(t, &s, "/readyz/hub")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "ok\n", text)
}

// serveHealth serves health as a configuration says, and returns its URL.
func serveHealth(t *testing.T, change func(c *Config)) string {
	t.Helper()
	ports, err := sandbox.FreePorts(1)
	require.NoError(t, err)
	config := DefaultConfig()
	config.HealthPort = ports[0]
	change(&config)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var s state
	go func() { ended <- s.serveTLS(ctx, &config, clock.RealClock{}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return "https://127.0.0.1:" + strconv.Itoa(ports[0])
}

// probe does what a kubelet does, with the TLS of a client.
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
		change func(c *Config)
		client *tls.Config
		suite  uint16
		fails  bool
	}{
		"as a kubelet probes": {change: func(*Config) {}, client: &tls.Config{}},
		"TLS 1.2 by default":  {change: func(*Config) {}, client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"nothing below":       {change: func(*Config) {}, client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, fails: true},
		"TLS 1.3 where it is required": {
			change: func(c *Config) { c.TLSMinVersion = "VersionTLS13" }, client: &tls.Config{},
		},
		"and nothing below it then": {
			change: func(c *Config) { c.TLSMinVersion = "VersionTLS13" },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, fails: true,
		},
		"the only cipher suite": {
			change: func(c *Config) { c.TLSCipherSuites = []string{ecdsaSuite} },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, suite: tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		},
		"the only cipher suite, which needs an RSA key": {
			change: func(c *Config) { c.TLSCipherSuites = []string{rsaSuite} },
			client: &tls.Config{MaxVersion: tls.VersionTLS12}, suite: tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		},
		"no other cipher suite": {
			change: func(c *Config) { c.TLSCipherSuites = []string{ecdsaSuite} },
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
				return err == nil || tc.fails
			}, time.Minute, 10*time.Millisecond, "it answers")
			if tc.fails {
				require.Error(t, err)
				return
			}
			assert.Equal(t, http.StatusOK, code)
			if tc.suite != 0 {
				assert.Equal(t, tc.suite, state.CipherSuite)
			}
			assert.True(t, state.PeerCertificates[0].NotAfter.After(time.Now().AddDate(9, 0, 0)), "it outlives the process")
		})
	}
}

func TestHealthIsNotServedOverHTTPSUnlessAsked(t *testing.T) {
	var s state
	for _, config := range []Config{{}, {Listen: "0", HealthPort: 1}} {
		require.NoError(t, s.serveTLS(t.Context(), &config, clock.RealClock{}))
	}
	require.ErrorContains(t, s.serveTLS(t.Context(), &Config{Listen: "nowhere"}, clock.RealClock{}), "--listen: ")
}
