package work

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
	secretKey, ownerKey = "key", "directory"
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
func (c *Cache) keySecret() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: names.SecretWorkCache}
}

// getSecret reads the Secret with the key; nil without error means that there is none.
func (c *Cache) getSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Secrets.Get(ctx, c.keySecret(), secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer here
	case apierrors.IsForbidden(err):
		return nil, keyRefusedError{cause: err}
	case err != nil:
		return nil, fmt.Errorf("reading the Secret %s with the key of the works on disk: %w", c.keySecret(), err)
	}
	return secret, nil
}

// readKey returns the key of the directory with the name owner; nil when there is none.
func (c *Cache) readKey(ctx context.Context, owner string) ([]byte, error) {
	if owner == "" {
		return nil, nil
	}
	secret, err := c.getSecret(ctx)
	if err != nil || secret == nil || string(secret.Data[ownerKey]) != owner || len(secret.Data[secretKey]) != keySize {
		return nil, err
	}
	return secret.Data[secretKey], nil
}

// ensureKey makes a key for this directory, if it has none: whatever was there before is worthless then.
func (c *Cache) ensureKey(ctx context.Context) error {
	c.mu.Lock()
	ready := c.seal != nil
	c.mu.Unlock()
	if ready {
		return nil
	}
	c.clear()
	owner := rand.Text()
	if err := os.WriteFile(filepath.Join(c.folder, ownerFile), []byte(owner), 0o600); err != nil {
		return fmt.Errorf("naming the directory: %w", err)
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	seal, err := newSeal(key)
	if err != nil {
		return err
	}
	secret, err := c.getSecret(ctx)
	if err != nil {
		return err
	}
	data := map[string][]byte{secretKey: key, ownerKey: []byte(owner)}
	if secret == nil {
		at := c.keySecret()
		err = c.Secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: data,
		})
	} else {
		secret.Data = data
		err = c.Secrets.Update(ctx, secret)
	}
	switch {
	case apierrors.IsForbidden(err):
		return keyRefusedError{cause: err}
	case err != nil:
		return fmt.Errorf("storing the key of the works on disk: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seal = seal
	return nil
}

// clear removes whatever files there are.
func (c *Cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, _ := os.ReadDir(c.folder)
	for _, file := range files {
		_ = os.Remove(filepath.Join(c.folder, file.Name()))
	}
	c.bytes = 0
	for name, known := range c.entries {
		known.size = 0
		c.entries[name] = known
	}
}

// takeBackKey removes the key because a copy that is out of date could not be removed. Nothing is written after that.
func (c *Cache) takeBackKey(ctx context.Context) error {
	secret, err := c.getSecret(ctx)
	if err != nil {
		return err
	}
	if secret != nil {
		err := c.Secrets.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the key of the works on disk: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disowned, c.closed = false, true
	return nil
}
