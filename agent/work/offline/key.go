package offline

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// The Secret names.SecretWorkCache has the key of the copies, and under directory the name of the one directory whose
// copies are good. An agent that keeps copies somewhere else, because its pod went to another node or another replica
// leads, makes a new key under the name of its own directory. So what the former one left can never be read again: it
// may be older than what is in force.
const (
	keyField, directoryField = "key", "directory"
)

// keyRefusedError says that the agent may not have the key.
type keyRefusedError struct{ cause error }

// Error says why.
func (e keyRefusedError) Error() string {
	return "the Secret with their key cannot be used: " + e.cause.Error()
}

// Unwrap returns the answer of the API server.
func (e keyRefusedError) Unwrap() error { return e.cause }

// keySecret names the Secret with the key.
func (s *Store) keySecret() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: names.SecretWorkCache}
}

// getSecret reads the Secret with the key; nil without error means that there is none.
func (s *Store) getSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Secrets.Get(ctx, s.keySecret(), secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer here
	case apierrors.IsForbidden(err):
		return nil, keyRefusedError{cause: err}
	case err != nil:
		return nil, fmt.Errorf("reading the Secret %s with the key of the works on disk: %w", s.keySecret(), err)
	}
	return secret, nil
}

// readKey returns the key of the directory with the name owner; nil when there is none.
func (s *Store) readKey(ctx context.Context, owner string) ([]byte, error) {
	if owner == "" {
		return nil, nil
	}
	secret, err := s.getSecret(ctx)
	if err != nil || secret == nil || string(secret.Data[directoryField]) != owner || len(secret.Data[keyField]) != keySize {
		return nil, err
	}
	return secret.Data[keyField], nil
}

// ensureKey makes a key for this directory, if it has none: whatever was there before is worthless then.
func (s *Store) ensureKey(ctx context.Context) error {
	s.mu.Lock()
	ready := s.aead != nil
	s.mu.Unlock()
	if ready {
		return nil
	}
	s.clear()
	owner := rand.Text()
	if err := os.WriteFile(filepath.Join(s.folder, ownerFile), []byte(owner), 0o600); err != nil {
		return fmt.Errorf("naming the directory: %w", err)
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	aead, err := newAEAD(key)
	if err != nil {
		return err
	}
	secret, err := s.getSecret(ctx)
	if err != nil {
		return err
	}
	data := map[string][]byte{keyField: key, directoryField: []byte(owner)}
	if secret == nil {
		at := s.keySecret()
		err = s.Secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: data,
		})
	} else {
		secret.Data = data
		err = s.Secrets.Update(ctx, secret)
	}
	switch {
	case apierrors.IsForbidden(err):
		return keyRefusedError{cause: err}
	case err != nil:
		return fmt.Errorf("storing the key of the works on disk: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aead = aead
	return nil
}

// clear removes whatever files there are.
func (s *Store) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, _ := os.ReadDir(s.folder)
	for _, file := range files {
		_ = os.Remove(filepath.Join(s.folder, file.Name()))
	}
	s.bytes = 0
	for name, known := range s.entries {
		known.size = 0
		s.entries[name] = known
	}
}

// deleteKey deletes the key because an outdated copy could not be deleted. Nothing is written after that.
func (s *Store) deleteKey(ctx context.Context) error {
	secret, err := s.getSecret(ctx)
	if err != nil {
		return err
	}
	if secret != nil {
		err := s.Secrets.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the key of the works on disk: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale, s.closed = false, true
	return nil
}
