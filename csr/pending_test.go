package csr

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
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
	assert.Equal(t, former.Data[KeyPrivateKey], w.stored().Key)
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
