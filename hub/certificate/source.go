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
)

// poll is how often the files are looked at, and how soon a Secret that failed is tried again.
const poll = 10 * time.Second

// Files says where administrators give a certificate.
type Files struct {
	// Dir holds tls.crt and tls.key; empty means that none is given.
	Dir string
	// CA holds the authority that the API server is to trust; empty means that nobody is told whom to trust.
	CA string
}

// Source holds the certificate that is served now. It takes the files where they are, and what Store makes elsewhere.
type Source struct {
	// Files are those of administrators.
	Files Files
	// Store makes a certificate where there are no files; nil means that none is made.
	Store *Store
	// Clock wakes the source.
	Clock clock.WithTicker

	mu      sync.Mutex
	serving *tls.Certificate
	trusted []byte
	// next is when the Secret is to be looked at again.
	next    time.Time
	changed chan struct{}
}

// errNone is told while there is no certificate.
var errNone = errors.New("there is no certificate yet")

// NeedLeaderElection reports whether only the leader serves: every replica does.
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

// Load takes the files, or what the Secret holds where something is due.
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

// Refresh reads the Secret again where the certificate comes from it: another replica may have changed it.
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

// set takes a certificate over, and wakes whoever waits when the API server is to trust something else.
func (s *Source) set(serving *tls.Certificate, trusted []byte, next time.Time) {
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

// Trusted returns what the API server is to trust, PEM; false while there is no certificate.
func (s *Source) Trusted() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted, s.serving != nil
}

// Changed returns a channel that is closed when Trusted returns something else.
func (s *Source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// load reads the files; false when one of them is not there.
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
