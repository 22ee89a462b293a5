package certificate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/expiry"
)

func newStore(c client.Client, clock *clocktesting.FakeClock) *Store {
	return &Store{
		Client: c, Key: types.NamespacedName{Namespace: "ns", Name: "own"},
		Names: []string{"hook.ns.svc", "127.0.0.1"}, Clock: clock, Random: rand.Reader,
	}
}

// verify requires that a user who trusts the authorities accepts the certificate for its names.
func verify(t *testing.T, serving tls.Certificate, trusted []byte, at time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(trusted))
	for _, name := range []string{"hook.ns.svc", "127.0.0.1"} {
		_, err := serving.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: at})
		require.NoError(t, err)
	}
}

// TestACertificateIsTrustedAtEveryInstantOfTwentyYears moves the clock by weeks: a user who trusts what the Secret said
// a week before accepts what is served now.
func TestACertificateIsTrustedAtEveryInstantOfTwentyYears(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	store := newStore(fake.NewClientBuilder().Build(), clock)
	serving, trusted, next, err := store.Ensure(t.Context())
	require.NoError(t, err)
	authorities, certificates := map[string]bool{string(trusted): true}, map[string]bool{string(serving.Certificate[0]): true}
	for clock.Now().Before(noon.Add(2 * authorityLife)) {
		before := trusted
		clock.SetTime(latest(next, clock.Now().Add(time.Hour)))
		serving, trusted, next, err = store.Ensure(t.Context())
		require.NoError(t, err)
		require.True(t, next.After(clock.Now()), "it does not come back at once")
		verify(t, serving, before, clock.Now())
		verify(t, serving, trusted, clock.Now())
		authorities[string(trusted)], certificates[string(serving.Certificate[0])] = true, true
	}
	assert.Greater(t, len(authorities), 2)
	assert.Greater(t, len(certificates), 20)
}

func TestReplicasThatStartTogetherServeTheSame(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	api := fake.NewClientBuilder().Build()
	var second []byte
	raced := false
	// The second replica completes the Secret after the first has read it, and before it writes.
	first := newStore(interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if !raced {
				raced = true
				serving, _, _, err := newStore(api, clock).Ensure(ctx)
				require.NoError(t, err)
				second = serving.Certificate[0]
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}), clock)
	serving, trusted, _, err := first.Ensure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, second, serving.Certificate[0])
	verify(t, serving, trusted, noon)
}

func TestWhatIsInTheSecretButNoCertificateIsReplaced(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{
		"ca.crt": []byte("x"), "ca.key": []byte("x"), "tls.crt": []byte("x"), "tls.key": []byte("x"), "mine": []byte("y"),
	}}
	secret.Namespace, secret.Name = "ns", "own"
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	serving, trusted, _, err := newStore(c, clocktesting.NewFakeClock(noon)).Ensure(t.Context())
	require.NoError(t, err)
	verify(t, serving, trusted, noon)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	assert.Equal(t, "y", string(secret.Data["mine"]))
}

func TestFilesComeFirst(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	dir := t.TempDir()
	registry := prometheus.NewPedanticRegistry()
	ends, err := expiry.New(registry, clock)
	require.NoError(t, err)
	s := &Source{
		Files: Files{Dir: dir, CA: filepath.Join(dir, "ca.crt")}, Clock: clock, Ends: ends,
		Store: newStore(fake.NewClientBuilder().Build(), clock),
	}
	_, found := s.Trusted()
	assert.False(t, found)
	_, err = s.Certificate(nil)
	require.Error(t, err)

	changed := s.Changed()
	require.NoError(t, s.Load(t.Context()))
	own, found := s.Trusted()
	require.True(t, found, "without files it makes one")
	told, err := testutil.GatherAndCount(registry, "spokelet_certificate_ends_timestamp_seconds", "spokelet_certificates_late")
	require.NoError(t, err)
	assert.Equal(t, 2, told, "the metrics have its end")
	<-changed

	changed = s.Changed()
	other := newStore(fake.NewClientBuilder().Build(), clock)
	_, _, _, err = other.Ensure(t.Context())
	require.NoError(t, err)
	var secret corev1.Secret
	require.NoError(t, other.Client.Get(t.Context(), other.Key, &secret))
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600))
	}
	require.NoError(t, s.Load(t.Context()))
	<-changed
	given, _ := s.Trusted()
	assert.Equal(t, secret.Data["ca.crt"], given)
	assert.NotEqual(t, own, given)
	served, err := s.Certificate(nil)
	require.NoError(t, err)
	verify(t, *served, given, noon)

	// Files that do not fit together change nothing.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), []byte("half written"), 0o600))
	require.Error(t, s.Load(t.Context()))
	again, err := s.Certificate(nil)
	require.NoError(t, err)
	assert.Equal(t, served, again)
}
