package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
)

// tokenPeriod is how long a token from a file is used before the file is read again, as client-go has it for tokens of
// ServiceAccounts.
const tokenPeriod = time.Minute

// tokenFile reads the file of a token, each time by way of its directory: the file may have become a link since the
// kubeconfig was checked, and the server that the kubeconfig names must not get a file from elsewhere.
type tokenFile struct {
	dir, path string
	clock     clock.PassiveClock
}

// rereadToken makes the clients of a configuration read the file of the token again, if there is one, without following
// a link that leads out of the directory. While it cannot be read, they use the last token, until the server refuses
// it.
func rereadToken(config *rest.Config, dir string, clk clock.PassiveClock) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the directory of the kubeconfig: %w", err)
	}
	path, err := filepath.Rel(dir, config.BearerTokenFile)
	if err != nil {
		return fmt.Errorf("finding the file of the token: %w", err)
	}
	source := transport.NewCachedTokenSource(tokenFile{dir: dir, path: path, clock: clk})
	if _, err := source.Token(); err != nil {
		return err
	}
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(transport.ResettableTokenSourceWrapTransport(source))
	return nil
}

// Token implements oauth2.TokenSource.
func (f tokenFile) Token() (*oauth2.Token, error) {
	raw, err := f.read()
	token := strings.TrimSpace(string(raw))
	if err == nil && token == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the token in %s: %w", filepath.Join(f.dir, f.path), err)
	}
	return &oauth2.Token{AccessToken: token, Expiry: f.clock.Now().Add(tokenPeriod)}, nil
}

// read returns the content of the file.
func (f tokenFile) read() ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	raw, err := root.ReadFile(f.path)
	return raw, errors.Join(err, root.Close())
}
