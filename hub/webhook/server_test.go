package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/spokelet/spokelet/hub/webhook"
)

func TestHandler(t *testing.T) {
	good, err := json.Marshal(review(beta, addOnAlpha))
	require.NoError(t, err)
	bad, err := json.Marshal(review("v9", addOnAlpha))
	require.NoError(t, err)
	tests := map[string]struct {
		method, contentType, body string
		code                      int
		status                    string
		says                      string
		// refused is how many reviews are counted as refused.
		refused float64
	}{
		"a review is answered": {
			body: string(good), code: http.StatusOK, status: metav1.StatusSuccess, says: "kubeClient",
		},
		"a content type may carry a charset": {
			contentType: "application/json; charset=utf-8", body: string(good),
			code: http.StatusOK, status: metav1.StatusSuccess,
		},
		"a review that cannot be converted is answered with the cause": {
			body: string(bad), code: http.StatusOK, status: metav1.StatusFailure, says: "to v9 is known",
			refused: 1,
		},
		"another method is refused": {
			method: http.MethodGet, code: http.StatusMethodNotAllowed, says: "POST a ConversionReview",
		},
		"another content type is refused": {
			contentType: "application/yaml", body: string(good), code: http.StatusUnsupportedMediaType,
		},
		"what is no JSON is refused": {body: "{", code: http.StatusBadRequest, says: "decoding the review"},
		"another version of the review is refused": {
			body: strings.Replace(string(good), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1),
			code: http.StatusBadRequest, says: "not a ConversionReview of apiextensions.k8s.io/v1",
		},
		"a body beyond the limit is refused": {
			body: `"` + strings.Repeat("x", 33<<20) + `"`, code: http.StatusRequestEntityTooLarge, says: "larger than",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			method, contentType := test.method, test.contentType
			if method == "" {
				method = http.MethodPost
			}
			if contentType == "" {
				contentType = "application/json"
			}
			request := httptest.NewRequestWithContext(t.Context(), method, webhook.Path, strings.NewReader(test.body))
			request.Header.Set("Content-Type", contentType)
			recorder := httptest.NewRecorder()
			registry := prometheus.NewRegistry()
			counters, err := webhook.NewCounters(registry)
			require.NoError(t, err)
			webhook.CountedHandler(logr.Discard(), counters).ServeHTTP(recorder, request)
			require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
				# HELP spokelet_conversion_refused_total Reviews that were refused, because an object cannot be converted.
				# TYPE spokelet_conversion_refused_total counter
				spokelet_conversion_refused_total %v
				`, test.refused)), "spokelet_conversion_refused_total"))
			body, err := io.ReadAll(recorder.Result().Body)
			require.NoError(t, err)
			assert.Equal(t, test.code, recorder.Code, string(body))
			assert.Contains(t, string(body), test.says)
			if test.code == http.StatusOK {
				answer := &apiextensionsv1.ConversionReview{}
				require.NoError(t, json.Unmarshal(body, answer))
				assert.Equal(t, test.status, answer.Response.Result.Status)
			}
		})
	}
}

func TestServerRunsInEveryReplica(t *testing.T) {
	server := webhook.NewServer(webhook.Options{}, logr.Discard())
	assert.False(t, server.NeedLeaderElection())
}

func TestTheServerTakesNoVersionOfTLSBelowTheLeast(t *testing.T) {
	encoded, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(encoded, key)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, ok := listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	require.NoError(t, listener.Close())
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: address.Port, MinVersion: tls.VersionTLS13,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
	}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(encoded))
	dial := func(most uint16) error {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, MaxVersion: most}}
		conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	require.Eventually(t, func() bool { return dial(tls.VersionTLS13) == nil }, 10*time.Second, 5*time.Millisecond)
	require.ErrorContains(t, dial(tls.VersionTLS12), "protocol version")
}
