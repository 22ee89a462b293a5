package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
)

// poll is how often the files are read, and the delay before a failed read of the Secret is tried again.
const poll = 10 * time.Second

// Files are the paths of a certificate that administrators provide.
type Files struct {
	// Dir contains tls.crt and tls.key; empty means that none is provided.
	Dir string
	// CA is the file of the authority for the API server; empty means that it is not configured.
	CA string
}

// Source provides the serving certificate: from the files if they exist, otherwise from Store.
type Source struct {
	// Files are those of administrators.
	Files Files
	// Store creates a certificate if there are no files; nil creates none.
	Store *Store
	// Ends is told when the certificate ends. Optional.
	Ends *expiry.Ends
	// Clock is the clock of the polling.
	Clock clock.WithTicker

	mu      sync.Mutex
	serving *tls.Certificate
	trusted []byte
	// next is when the Secret must be read again.
	next    time.Time
	changed chan struct{}
}

// errNone is returned while there is no certificate.
var errNone = errors.New("there is no certificate yet")

// NeedLeaderElection returns false: every replica serves.
func (*Source) NeedLeaderElection() bool { return false }

// Start keeps the certificate up to date until ctx ends.
func (s *Source) Start(ctx context.Context) error {
	logger, logged := ctrl.LoggerFrom(ctx).WithName("hub.certificate"), ""
	ticker := s.Clock.NewTicker(poll)
	defer ticker.Stop()
	for {
		if err := s.Load(ctx); err != nil && err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			logger.Error(err, "loading the certificate of the webhook; this is tried again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Load reads the files or, if they do not exist and something is due, the Secret.
func (s *Source) Load(ctx context.Context) error {
	serving, trusted, found, err := s.Files.load()
	switch {
	case err != nil:
		return err
	case found:
		s.set(&serving, trusted, time.Time{})
		return nil
	case s.Store == nil:
		return errNone
	}
	s.mu.Lock()
	due := s.serving == nil || !s.Clock.Now().Before(s.next)
	s.mu.Unlock()
	if !due {
		return nil
	}
	return s.Refresh(ctx)
}

// Refresh reads the Secret again, which another replica may have changed; with files, it does nothing.
func (s *Source) Refresh(ctx context.Context) error {
	if _, _, found, err := s.Files.load(); found || err != nil || s.Store == nil {
		return err
	}
	serving, trusted, next, err := s.Store.Ensure(ctx)
	if err != nil {
		return err
	}
	s.set(&serving, trusted, next)
	return nil
}

// set replaces the certificate. It closes the channel of Changed when the authority changes.
func (s *Source) set(serving *tls.Certificate, trusted []byte, next time.Time) {
	if leaf := serving.Leaf; leaf != nil {
		s.Ends.Set(expiry.Webhook, "", causes.Life{From: leaf.NotBefore, To: leaf.NotAfter})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	trustChanged := s.serving == nil || !bytes.Equal(s.trusted, trusted)
	s.serving, s.trusted, s.next = serving, trusted, next
	if trustChanged && s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Certificate returns the certificate to serve, for tls.Config.
func (s *Source) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return nil, errNone
	}
	return s.serving, nil
}

// Trusted returns the authority for the API server, PEM; false while there is no certificate.
func (s *Source) Trusted() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted, s.serving != nil
}

// Changed returns a channel that is closed when the result of Trusted changes.
func (s *Source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// load reads the files; false when one does not exist.
func (f Files) load() (tls.Certificate, []byte, bool, error) {
	if f.Dir == "" {
		return tls.Certificate{}, nil, false, nil
	}
	content := make([][]byte, 0, 3)
	for _, path := range []string{filepath.Join(f.Dir, keyServing), filepath.Join(f.Dir, keyServingKey), f.CA} {
		if path == "" {
			content = append(content, nil)
			continue
		}
		data, err := os.ReadFile(path)
		switch {
		case os.IsNotExist(err):
			return tls.Certificate{}, nil, false, nil
		case err != nil:
			return tls.Certificate{}, nil, false, fmt.Errorf("reading the certificate of the webhook: %w", err)
		}
		content = append(content, data)
	}
	serving, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return tls.Certificate{}, nil, false, fmt.Errorf("reading the certificate in %s: %w", f.Dir, err)
	}
	return serving, content[2], true, nil
}
