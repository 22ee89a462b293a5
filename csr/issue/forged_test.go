package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forge replaces the credential by a pair.
func (w *world) forge(pair Pair) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "credential"}}
	require.NoError(w.t, client.IgnoreNotFound(w.api.Delete(w.t.Context(), secret.DeepCopy())))
	pair.Put(secret)
	require.NoError(w.t, w.api.Create(w.t.Context(), secret))
}

// Who may write the Secret of an add-on, on the managed cluster, signs a certificate with the subject in the Secret, which
// is due and not yet over, and writes it again whenever the agent has stored a new one.
//
// Shows: security/forged-tokens
func TestAForgedCertificateThatIsDueDoesNotMakeTheHubIssueOneAfterTheOther(t *testing.T) {
	w, forger := newWorld(t), newSigner(t)
	w.user = "agent"
	due := forger.pair(t, wanted, noon.Add(-time.Hour), noon.Add(10*time.Minute))
	for range 200 {
		w.forge(due)
		w.refresh()
		_, err := w.pass()
		require.NoError(t, err)
		w.approve()
		w.now = w.now.Add(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, len(w.created), 12, "in twenty seconds; where each credential is removed it is ten in a minute")
}
