package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// issue writes a certificate of a station into a folder and returns its CA.
func issue(t *testing.T, folder, name string) *x509.CertPool {
	t.Helper()
	create := func(template *x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		if parent == nil {
			parent, signer = template, key
		}
		raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		require.NoError(t, err)
		certificate, err := x509.ParseCertificate(raw)
		require.NoError(t, err)
		return certificate, key
	}
	until := time.Now().Add(time.Hour)
	ca, caKey := create(&x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf, key := create(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: until, Subject: pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, caKey)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: leaf.Raw}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: raw},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return pool
}

// newStation returns a station of cluster c1, with a forecast on the hub and two nodes.
func newStation(t *testing.T) (*station, *x509.CertPool) {
	t.Helper()
	s := &station{
		hub: fake.NewClientset(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weather-central", Name: "forecast"}, Data: map[string]string{"text": "sun"},
		}),
		managed: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}),
		cluster: "c1", certificate: t.TempDir(),
	}
	return s, issue(t, s.certificate, "station-c1")
}

// onHub returns the ConfigMap with the report.
func onHub(t *testing.T, s *station) *corev1.ConfigMap {
	t.Helper()
	found, err := s.hub.CoreV1().ConfigMaps("c1").Get(t.Context(), "weather", metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

func TestAReportIsSignedByItsStation(t *testing.T) {
	s, roots := newStation(t)
	require.NoError(t, s.report(t.Context()))
	data := onHub(t, s).Data
	report, err := Verify(data, roots)
	require.NoError(t, err)
	assert.Equal(t, Report{Station: "station-c1", Forecast: "sun", Kubernetes: report.Kubernetes, Nodes: 2}, report)

	other := issue(t, t.TempDir(), "station-c2")
	_, err = Verify(data, other)
	require.ErrorContains(t, err, "verifying the certificate")
	data["report"] += " "
	_, err = Verify(data, roots)
	require.ErrorContains(t, err, "verifying the signature")
	_, err = Verify(nil, roots)
	require.ErrorContains(t, err, "there is no certificate")
}

func TestAReportIsWrittenWhenItChanges(t *testing.T) {
	s, roots := newStation(t)
	require.NoError(t, s.report(t.Context()))
	first := onHub(t, s).Data
	require.NoError(t, s.report(t.Context()))
	assert.Equal(t, first, onHub(t, s).Data, "nothing changed")

	forecast := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weather-central", Name: "forecast"}, Data: map[string]string{"text": "rain"},
	}
	_, err := s.hub.CoreV1().ConfigMaps("weather-central").Update(t.Context(), forecast, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.report(t.Context()))
	report, err := Verify(onHub(t, s).Data, roots)
	require.NoError(t, err)
	assert.Equal(t, "rain", report.Forecast)

	renewed := issue(t, s.certificate, "station-c1")
	require.NoError(t, s.report(t.Context()))
	_, err = Verify(onHub(t, s).Data, renewed)
	require.NoError(t, err, "a renewed certificate signs")
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	s, _ := newStation(t)
	s.certificate = t.TempDir()
	require.ErrorContains(t, s.report(t.Context()), "reading the certificate of the station: open")
	s, _ = newStation(t)
	s.hub = fake.NewClientset()
	require.ErrorContains(t, s.report(t.Context()), `reading the forecast on the hub: configmaps "forecast" not found`)
}

func TestGoodbye(t *testing.T) {
	s, roots := newStation(t)
	require.NoError(t, goodbye(t.Context(), s.hub, "c1"), "there is no report to close")
	require.NoError(t, s.report(t.Context()))
	require.NoError(t, goodbye(t.Context(), s.hub, "c1"))
	last := onHub(t, s).Data
	assert.Equal(t, "true", last["closed"])
	_, err := Verify(last, roots)
	require.NoError(t, err, "the last report stays")

	issue(t, s.certificate, "station-c1")
	require.NoError(t, s.report(t.Context()))
	assert.Equal(t, last, onHub(t, s).Data, "the agent still runs, and leaves it closed")
	s.reported = false
	require.NoError(t, s.report(t.Context()))
	assert.Empty(t, onHub(t, s).Data["closed"], "an agent that begins opens it")
}

func TestTheHealthIsThatOfTheLastReport(t *testing.T) {
	h := &health{}
	status := func() int {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, nil)
		return recorder.Code
	}
	assert.Equal(t, http.StatusOK, status())
	h.set(errors.New("the hub is silent"))
	assert.Equal(t, http.StatusServiceUnavailable, status())
	h.set(nil)
	assert.Equal(t, http.StatusOK, status())
}

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"a cluster is required":         {[]string{"--hub-kubeconfig=f"}, "--cluster and --hub-kubeconfig are required"},
		"a kubeconfig is required":      {[]string{"--cluster=c1"}, "--cluster and --hub-kubeconfig are required"},
		"the interval must be positive": {[]string{"--cluster=c1", "--hub-kubeconfig=f", "--interval=0s"}, "--interval must be positive"},
		"these are enough":              {[]string{"--cluster=c1", "--hub-kubeconfig=f"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.arguments)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
	require.ErrorContains(t, command(t.Context(), []string{"goodbye", "--cluster=c1", "--hub-kubeconfig=/none"}),
		"reading the kubeconfig of the hub")
}
