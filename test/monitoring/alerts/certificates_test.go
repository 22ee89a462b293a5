package alerts_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// signer is the process that signs certificates of the hub: kube-controller-manager.
func (w *world) signer(signal syscall.Signal) {
	w.Helper()
	require.NoError(w, syscall.Kill(w.fleet.Hub.PIDs()[2], signal))
}

// ageCertificate gives an agent a certificate of which nine tenths of the life are over, while nothing signs for it. The
// agent takes it for one that it got a moment ago, and tells the hub when it ends; then it finds that it is late.
func ageCertificate(w *world) {
	w.signer(syscall.SIGSTOP)
	w.credential(func(secret *corev1.Secret) {
		secret.Data[csr.KeyCertificate] = w.older(secret.Data[csr.KeyCertificate], secret.Data[csr.KeyPrivateKey])
	})
	w.metric(`spokelet_fleet_certificates_late{kind="agent"}`, positive)
	w.credential(func(secret *corev1.Secret) { delete(secret.Annotations, names.AnnotationIssuedAt) })
	w.metric(`spokelet_certificates_late{kind="agent"}`, positive)
	w.metric(`spokelet_agent_connected{to="hub"}`, func(n float64) bool { return n == 2 })
	w.metric(`spokelet_fleet_clusters{code="well"}`, func(n float64) bool { return n == 2 })
}

// credential changes the Secret with the credential of an agent, which does not run meanwhile.
func (w *world) credential(change func(*corev1.Secret)) {
	w.Helper()
	cluster := w.fleet.Cluster(far)
	cluster.Agent.Stop(patience)
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.NamespaceAgent, Name: names.SecretHub}
	require.NoError(w, cluster.Client.Get(w.Context(), key, &secret))
	change(&secret)
	require.NoError(w, cluster.Client.Update(w.Context(), &secret))
	require.NoError(w, cluster.Agent.Start())
}

func renewCertificate(w *world) {
	w.signer(syscall.SIGCONT)
	w.metric(`spokelet_certificates_late{kind="agent"}`, zero)
	w.metric(`spokelet_fleet_certificates_late{kind="agent"}`, zero)
	w.metric(`spokelet_fleet_clusters{code="well"}`, func(n float64) bool { return n == 2 })
}

// older returns a certificate like another one, of which nine tenths of the life are over.
func (w *world) older(certificate, key []byte) []byte {
	w.Helper()
	chain, err := cert.ParseCertsPEM(certificate)
	require.NoError(w, err)
	private, err := keyutil.ParsePrivateKeyPEM(key)
	require.NoError(w, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: chain[0].Subject}, private)
	require.NoError(w, err)
	now := clock.RealClock{}.Now()
	signed, err := w.fleet.Hub.SignRequest(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
		now.Add(past), now.Add(future))
	require.NoError(w, err)
	return signed
}

// serveCertificate writes a certificate for the webhook whose life began an hour ago.
func (w *world) serveCertificate(life time.Duration) {
	w.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{
		Host: "127.0.0.1", AlternateIPs: []net.IP{net.IPv4(127, 0, 0, 1)}, MaxAge: life,
	})
	require.NoError(w, err)
	dir := filepath.Join(w.fleet.Dir(), "webhook")
	require.NoError(w, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	require.NoError(w, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
}

// ageWebhookCertificate lets an administrator forget to renew the certificate of the webhook.
func ageWebhookCertificate(w *world) {
	w.serveCertificate(65 * time.Minute)
	w.metric(`spokelet_certificates_late{kind="webhook"}`, positive)
}

func renewWebhookCertificate(w *world) {
	w.serveCertificate(24 * time.Hour)
	w.metric(`spokelet_certificates_late{kind="webhook"}`, zero)
}
