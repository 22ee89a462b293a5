package issue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/names"

	"github.com/spokelet/spokelet/csr"
)

func TestTwoAgentsOfOneNamespaceDoNotShareAPendingKey(t *testing.T) {
	w := newWorld(t)
	usual, other := w.as(""), w.as("other")
	for range 5 {
		for _, act := range []func(){usual, other} {
			act()
			w.refresh()
		}
	}
	assert.Len(t, w.created, 2, "one request for each of the two")
}

// as returns a pass of an agent with this Secret for its own credential, and the same certificate to be had.
func (w *world) as(secret string) func() {
	return func() {
		w.secret = secret
		_, err := w.pass()
		require.NoError(w.t, err)
	}
}

func TestAPendingKeyUnderTheFormerNameIsResumed(t *testing.T) {
	w := newWorld(t)
	w.as("")() // an earlier version used this name whatever the Secret of the credential was called
	former := w.pendingSecret()
	require.NotNil(t, former)
	delete(former.Annotations, names.AnnotationAgent)
	require.NoError(t, w.api.Update(t.Context(), former))
	w.refresh()
	w.as("other")()
	w.refresh()
	require.Len(t, w.created, 1, "the request of the former key is waited for")
	w.approve()
	w.refresh()
	w.as("other")()
	assert.Len(t, w.created, 1)
	assert.Equal(t, former.Data[csr.KeyPrivateKey], w.stored().Key)
	w.secret = ""
	assert.Nil(t, w.pendingSecret(), "the former key served its turn")
}

func TestAPendingKeyOfAnotherAgentUnderTheFormerNameIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.as("")()
	other := w.pendingSecret()
	delete(other.Annotations, names.AnnotationAgent)
	other.Data[keyFingerprint] = []byte("that of another agent")
	require.NoError(t, w.api.Update(t.Context(), other))
	w.refresh()
	w.as("other")()
	assert.Len(t, w.created, 2)
	w.secret = ""
	assert.Equal(t, other.Data, w.pendingSecret().Data)
}

func TestTheSecretOfAPendingKeyNamesItsAgent(t *testing.T) {
	w := newWorld(t)
	w.as("other")()
	assert.Equal(t, "agent/other", w.pendingSecret().Annotations[names.AnnotationAgent])
	assert.False(t, IsFormer(w.pendingSecret()))
	assert.False(t, IsFormer(nil))
	assert.True(t, IsFormer(&corev1.Secret{}))
}

func TestTheNameOfAPendingKey(t *testing.T) {
	addon := ofAddon(t, "hello", "example.com/s")
	cluster := csr.ForCluster("c1", "agent")
	for name, tc := range map[string]struct {
		want   csr.Request
		secret string
		same   string
	}{
		"the default Secret of a cluster need not be named":    {cluster, "", "hub-kubeconfig-secret"},
		"the default Secret of an add-on need not be named":    {addon, "", "hub-kubeconfig-secret"},
		"another agent has another name for its cluster":       {cluster, "other", ""},
		"another agent has another name for the same add-on":   {addon, "other", ""},
		"a third agent has a name that is not of the second's": {addon, "third", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := PendingName(tc.want, tc.secret)
			if tc.same != "" {
				assert.Equal(t, PendingName(tc.want, tc.same), got)
				return
			}
			assert.NotEqual(t, PendingName(tc.want, ""), got)
			assert.NotEqual(t, PendingName(tc.want, "another"), got)
		})
	}
}

func TestAnAttemptThatCannotBeReadIsTheFirst(t *testing.T) {
	for value, want := range map[string]int{"": 0, "3": 3, "0": 0, "-1": 0, "x": 0} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID("u")},
			Data:       map[string][]byte{csr.KeyPrivateKey: []byte("key"), keyAttempt: []byte(value)},
		}
		assert.Equal(t, want, readPending(secret).attempt, "attempt %q", value)
	}
	assert.Nil(t, readPending(&corev1.Secret{}))
	assert.Nil(t, readPending(nil))
}

func TestPendingSurvivesItsSecret(t *testing.T) {
	full := pendingKey{
		key: []byte("key"), fingerprint: "f", requestUID: "uid", certificate: []byte("crt"), attempt: 3, failure: "why",
	}
	for name, want := range map[string]pendingKey{"full": full, "bare": {key: []byte("key")}} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{"other": []byte("stays"), "failure": []byte("old")}}
			want.write(secret)
			assert.Equal(t, &want, readPending(secret))
			assert.Equal(t, []byte("stays"), secret.Data["other"])
		})
	}
	assert.Nil(t, readPending(nil))
	assert.Nil(t, readPending(&corev1.Secret{Data: map[string][]byte{"cluster-name": []byte("c1")}}))
	garbled := readPending(&corev1.Secret{Data: map[string][]byte{"tls.key": []byte("k"), "attempt": []byte("-7")}})
	assert.Zero(t, garbled.attempt)
}

func TestPendingNames(t *testing.T) {
	assert.Equal(t, "hub-kubeconfig-secret-pending", PendingName(csr.ForCluster("c1", "a1"), ""))
	assert.Equal(t, "other-pending", PendingName(csr.ForCluster("c1", "a1"), "other"))
	name := func(addon string, signerName string) string {
		return PendingName(ofAddon(t, addon, signerName), "")
	}
	assert.Regexp(t, `^hello-[0-9a-f]{10}-pending$`, name("hello", "example.com/s"))
	assert.NotEqual(t, name("a", "b-c.com/s"), name("a-b", "c.com/s"), "although their Secrets have the same name")
	assert.NotEqual(t, name("a", "example.com/s"), name("a", "example.com/t"))
	request := ofAddon(t, "a", "example.com/s")
	assert.Equal(t, PendingName(request, ""), PendingName(request, "hub-kubeconfig-secret"))
	assert.NotEqual(t, PendingName(request, ""), PendingName(request, "other"), "two agents share a namespace")
}
