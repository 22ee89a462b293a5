package csr_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// noonUTC is the instant at which everything here happens.
var noonUTC = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newFuzzCA returns a CA as PEM, certificate and key in SEC 1, good for some days around noonUTC.
func newFuzzCA(tb testing.TB) (certPEM, keyPEM []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: noonUTC.Add(-time.Hour), NotAfter: noonUTC.Add(1000 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(tb, err)
	sec1, err := x509.MarshalECPrivateKey(key)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1})
}

// oneCertificate decodes a PEM file that must hold one certificate and nothing else.
func oneCertificate(tb testing.TB, certPEM []byte) *x509.Certificate {
	tb.Helper()
	block, rest := pem.Decode(certPEM)
	require.NotNil(tb, block)
	require.Empty(tb, rest)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(tb, err)
	return certificate
}

// FuzzJudgeAndSign feeds everything that the author of a request chooses to the judge of add-ons and signs what it
// approves, as the hub does: the certificate says what the registration of the hub says and nothing else.
func FuzzJudgeAndSign(f *testing.F) {
	certPEM, keyPEM := newFuzzCA(f)
	authority, err := csr.ParseAuthority(certPEM, keyPEM)
	require.NoError(f, err)
	registration := customRegistration("user-test", []string{"g1", "g2"}, []string{"unit"})
	asked := newRequest(f, forAddon(f, "c1", "hello", registration), "")
	good := asked.Spec.Request
	agent := csr.ClusterUser("c1", "a")
	f.Add(good, agent, customSigner, "c1", "hello", "client auth,digital signature,key encipherment", int32(3600))
	f.Add(append([]byte("x"), good...), agent, customSigner, "c1", "hello", "client auth,server auth", int32(0))
	f.Add(append(bytes.Clone(good), good...), agent, "kubernetes.io/kube-apiserver-client", "c1", "hello", "any", int32(-1))
	f.Fuzz(func(
		t *testing.T, content []byte, requester, signerName, cluster, addon, usages string, seconds int32,
	) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				names.LabelClusterName: cluster, names.LabelAddonName: addon,
			}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: content, Username: requester, SignerName: signerName, ExpirationSeconds: ptr.To(seconds),
			},
		}
		for usage := range strings.SplitSeq(usages, ",") {
			request.Spec.Usages = append(request.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		v := csr.JudgeAddon(request, []addonv1beta1.RegistrationConfig{registration})
		require.LessOrEqual(t, len(v.Message), 1000)
		if v.Decision != csr.DecisionApprove {
			require.NotEmpty(t, v.Reason)
			return
		}
		id, ok := csr.ParseClusterUser(requester)
		require.True(t, ok && id.Cluster == cluster, "the requester is %q", requester)
		signed, err := authority.Sign(csr.Issuance{CSR: request, Expected: v.Expected, Now: noonUTC, Random: rand.Reader})
		require.NoError(t, err)
		certificate := oneCertificate(t, signed)
		require.Equal(t, "CN=user-test,OU=unit,O=g1+O=g2", certificate.Subject.String())
		require.Equal(t, []string{addon + ".addon.open-cluster-management.io"}, certificate.DNSNames)
		require.Empty(t, certificate.URIs)
		require.Empty(t, certificate.IPAddresses)
		require.Empty(t, certificate.EmailAddresses)
		require.False(t, certificate.IsCA)
		require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, certificate.ExtKeyUsage)
		require.LessOrEqual(t, certificate.NotAfter.Sub(noonUTC), 24*time.Hour)
	})
}

// FuzzJudgeCluster feeds everything that the author of a request chooses to the judge of clusters: what it lets pass
// names, to the parser of the standard library, one agent of the cluster of the label, who asks for itself, and no
// group besides the two of the cluster.
func FuzzJudgeCluster(f *testing.F) {
	own := csr.ForCluster("c1", "a")
	good := newRequest(f, own, "").Spec.Request
	f.Add(good, own.User, "c1", "client auth,digital signature,key encipherment", int32(0))
	f.Add(good, csr.ClusterUser("c10", "a"), "c1", "client auth", int32(1<<30))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\na: b\n\n-----END CERTIFICATE REQUEST-----"), "trusted", "c1", "", int32(1))
	f.Fuzz(func(t *testing.T, content []byte, requester, cluster, usages string, seconds int32) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelClusterName: cluster}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: content, Username: requester, ExpirationSeconds: ptr.To(seconds),
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
			},
		}
		for usage := range strings.SplitSeq(usages, ",") {
			request.Spec.Usages = append(request.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		v := csr.JudgeCluster(request, trust("trusted"), false)
		require.LessOrEqual(t, len(v.Message), 1000)
		if v.Decision != csr.DecisionApprove && v.Decision != csr.DecisionReview {
			return
		}
		parsed, err := csr.ParseRequest(content)
		require.NoError(t, err)
		require.NoError(t, parsed.CheckSignature())
		id, ok := csr.ParseClusterUser(parsed.Subject.CommonName)
		require.True(t, ok && id.Cluster == cluster)
		require.True(t, requester == "trusted" || requester == parsed.Subject.CommonName)
		require.Equal(t, v.Decision == csr.DecisionReview, requester == parsed.Subject.CommonName)
		require.Contains(t, parsed.Subject.Organization, csr.ClusterGroup(cluster))
		require.Subset(t, []string{csr.ClusterGroup(cluster), csr.GroupManagedClusters}, parsed.Subject.Organization)
		require.Len(t, parsed.Subject.Names, 1+len(parsed.Subject.Organization))
		require.Empty(t, parsed.Extensions)
		require.Len(t, request.Spec.Usages, 3)
	})
}

// FuzzParseRequest reads any bytes as a request: what is read stays the same when it is written again.
func FuzzParseRequest(f *testing.F) {
	f.Add(newRequest(f, csr.ForCluster("c1", "a"), "").Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		parsed, err := csr.ParseRequest(content)
		if err != nil {
			require.Nil(t, parsed)
			return
		}
		again, err := csr.ParseRequest(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: parsed.Raw}))
		require.NoError(t, err)
		require.Equal(t, parsed.Raw, again.Raw)
		require.Equal(t, parsed.Subject.String(), again.Subject.String())
		require.Equal(t, parsed.DNSNames, again.DNSNames)
	})
}

// FuzzHubServer reads any bytes as a kubeconfig: the kubeconfig that is written for what was read leads to the same
// hub, and is known again.
func FuzzHubServer(f *testing.F) {
	f.Add([]byte(`{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "hub", "user": "u"}}],
"clusters": [{"name": "hub", "cluster": {"server": "https://hub:6443", "proxy-url": "http://p", "certificate-authority-data": "Y2E="}}]}`))
	f.Add([]byte("current-context: x\ncontexts:\n- name: x\nclusters:\n- name: \"\"\n  cluster: {server: https://h}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: null\n"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		server, err := csr.ParseHubServer(kubeconfig)
		if err != nil {
			require.Equal(t, csr.HubServer{}, server)
			require.False(t, server.Describes(kubeconfig))
			return
		}
		require.NotEmpty(t, server.Server)
		written, err := server.Kubeconfig()
		require.NoError(t, err)
		require.True(t, server.Describes(written), "written: %s", written)
		require.False(t, server.DescribesToken(written), "written: %s", written)
		again, err := csr.ParseHubServer(written)
		require.NoError(t, err)
		require.True(t, server.Equal(again))
		require.Equal(t, server.Name(), again.Name())
		if server.Describes(kubeconfig) {
			require.True(t, again.Describes(kubeconfig))
		}
	})
}

// FuzzPending reads any data as the Secrets of a credential and of a pending key and takes the next step: a pair that
// fits is one that the standard library reads as what is wanted, a good pair is never given up, and what is taken fits.
func FuzzPending(f *testing.F) {
	want := csr.ForCluster("c1", "a")
	key, err := csr.NewKey()
	require.NoError(f, err)
	certPEM, caKey := newFuzzCA(f)
	authority, err := csr.ParseAuthority(certPEM, caKey)
	require.NoError(f, err)
	request, err := want.Build(key)
	require.NoError(f, err)
	issued, err := authority.Sign(csr.Issuance{CSR: request, Expected: want, Now: noonUTC, Random: rand.Reader})
	require.NoError(f, err)
	f.Add(issued, key, []byte(""), []byte(""), []byte("f"), []byte("3"), "2026-11-20T12:00:00Z", int64(0))
	f.Add(issued, key, issued, key, []byte("f"), []byte("-1"), "2026-11-21T11:59:59Z", int64(20*3600))
	f.Add([]byte(""), []byte(""), issued, key, []byte(""), []byte("x"), "yesterday", int64(48*3600))
	f.Fuzz(func(
		t *testing.T, cert, key, pendingCert, pendingKey, fingerprint, attempt []byte, issuedAt string, seconds int64,
	) {
		now := noonUTC.Add(time.Duration(seconds%(1<<30)) * time.Second)
		pending := csr.ReadPending(&corev1.Secret{Data: map[string][]byte{
			csr.KeyPrivateKey: pendingKey, csr.KeyCertificate: pendingCert, "fingerprint": fingerprint, "attempt": attempt,
			"issued-at": []byte(issuedAt),
		}})
		require.Equal(t, len(pendingKey) == 0, pending == nil)
		if pending != nil {
			require.GreaterOrEqual(t, pending.Attempt, 0)
			require.Equal(t, pendingKey, pending.Key)
		}
		stored := csr.PairOf(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationIssuedAt: issuedAt}},
			Data:       map[string][]byte{csr.KeyCertificate: cert, csr.KeyPrivateKey: key},
		})
		v := csr.JudgePair(stored, want, now)
		require.Equal(t, v.Fits, v.Why == "")
		if v.Fits {
			block, _ := pem.Decode(cert)
			require.NotNil(t, block)
			require.False(t, now.After(v.NotAfter))
			require.False(t, v.RotateAt.Before(v.NotBefore))
		}
		plan := csr.Decide(csr.Standing{Now: now, Want: want, Hub: "hub", Stored: stored, Pending: pending})
		if v.Fits && !v.Due(now) {
			require.Contains(t, []csr.Step{csr.StepNone, csr.StepForget}, plan.Step)
		}
		if plan.Step == csr.StepTake {
			require.True(t, csr.JudgePair(plan.Pair, want, now).Fits)
		}
	})
}

// FuzzParseAuthority reads any bytes as a CA: with what is read, what is signed verifies.
func FuzzParseAuthority(f *testing.F) {
	certPEM, keyPEM := newFuzzCA(f)
	f.Add(certPEM, keyPEM)
	f.Add(certPEM, []byte("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), keyPEM)
	want := csr.ForCluster("c1", "a")
	request := newRequest(f, want, "")
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		authority, err := csr.ParseAuthority(certificate, key)
		if err != nil {
			require.NotContains(t, err.Error(), "PRIVATE KEY-----", "no error quotes a key")
			return
		}
		signed, err := authority.Sign(csr.Issuance{CSR: request, Expected: want, Now: noonUTC, Random: rand.Reader})
		if err != nil {
			return // It is not valid at noon.
		}
		block, _ := pem.Decode(certificate)
		ca, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.NoError(t, oneCertificate(t, signed).CheckSignatureFrom(ca))
	})
}

// FuzzUsersRoundTrip builds the user names of agents from any parts: where a part holds what separates parts, the name
// is read as that of nobody else.
func FuzzUsersRoundTrip(f *testing.F) {
	f.Add("c1", "hello", "a")
	f.Add("cluster", "addon", "agent")
	f.Add("c1:a", "b:addon:c", "")
	f.Fuzz(func(t *testing.T, cluster, addon, agent string) {
		plain := func(parts ...string) bool {
			for _, part := range parts {
				if part == "" || strings.Contains(part, ":") {
					return false
				}
			}
			return true
		}
		id, ok := csr.ParseClusterUser(csr.ClusterUser(cluster, agent))
		require.Equal(t, plain(cluster, agent), ok && id == csr.Identity{Cluster: cluster, Agent: agent})
		addonID, ok := csr.ParseAddonUser(csr.AddonUser(cluster, addon, agent))
		if plain(cluster, addon, agent) {
			require.True(t, ok)
			require.Equal(t, csr.AddonIdentity{Cluster: cluster, Addon: addon, Agent: agent}, addonID)
		}
		if ok {
			require.Equal(t, csr.AddonUser(cluster, addon, agent),
				csr.AddonUser(addonID.Cluster, addonID.Addon, addonID.Agent))
		}
	})
}
