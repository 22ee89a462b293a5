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

// The Secret names.SecretWorkCache contains the key of the copies and, under directoryField, the name of the one
// directory with valid copies. An agent that keeps copies in another place, because its pod moved to another node or
// another replica leads, creates a new key with the name of its own directory. So nobody can decrypt the copies of the
// former one any more, which may be older than what is applied.
const (
	keyField, directoryField = "key", "directory"
)

// keyRefusedError means that the agent has no right to the key.
type keyRefusedError struct{ cause error }

// Error has the answer of the API server.
func (e keyRefusedError) Error() string {
	return "the Secret with their key cannot be used: " + e.cause.Error()
}

// Unwrap returns the answer of the API server.
func (e keyRefusedError) Unwrap() error { return e.cause }

// keySecret names the Secret with the key.
func (s *Store) keySecret() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: names.SecretWorkCache}
}

// getSecret reads the Secret with the key; nil without an error means that it does not exist.
func (s *Store) getSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Secrets.Get(ctx, s.keySecret(), secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // absence is a valid result
	case apierrors.IsForbidden(err):
		return nil, keyRefusedError{cause: err}
	case err != nil:
		return nil, fmt.Errorf("reading the Secret %s with the key of the works on disk: %w", s.keySecret(), err)
	}
	return secret, nil
}

// readKey returns the key of the directory with the name; nil if there is none.
func (s *Store) readKey(ctx context.Context, directory string) ([]byte, error) {
	if directory == "" {
		return nil, nil
	}
	secret, err := s.getSecret(ctx)
	if err != nil || secret == nil || string(secret.Data[directoryField]) != directory {
		return nil, err
	}
	if key := secret.Data[keyField]; len(key) == keySize {
		return key, nil
	}
	return nil, nil
}

// ensureKey creates a key for the directory if it has none. All copies that exist before are invalid then.
func (s *Store) ensureKey(ctx context.Context) error {
	s.mu.Lock()
	exists := s.aead != nil
	s.mu.Unlock()
	if exists {
		return nil
	}
	s.deleteFiles()
	directory := rand.Text()
	if err := os.WriteFile(filepath.Join(s.folder, ownerFile), []byte(directory), 0o600); err != nil {
		return fmt.Errorf("naming the directory: %w", err)
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	aead, err := newAEAD(key)
	if err != nil {
		return err
	}
	if err := s.writeKey(ctx, map[string][]byte{keyField: key, directoryField: []byte(directory)}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aead = aead
	return nil
}

// writeKey creates or updates the Secret with the key.
func (s *Store) writeKey(ctx context.Context, data map[string][]byte) error {
	secret, err := s.getSecret(ctx)
	if err != nil {
		return err
	}
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
	return nil
}

// deleteFiles deletes all files of the store.
func (s *Store) deleteFiles() {
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
			return fmt.Errorf("deleting the key of the works on disk: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale, s.closed = false, true
	return nil
}
