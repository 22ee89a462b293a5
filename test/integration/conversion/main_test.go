// Package conversion_test runs the conversion webhook of the hub under a real API server: what is written in one
// version of the add-on APIs is read in the other, and our own client does not need the webhook at all.
package conversion_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/test/sandbox"
)

// What the tests share: one control plane, an administrator's client and the webhook.
var (
	admin     client.WithWatch
	converter *server
)

func TestMain(m *testing.M) { os.Exit(sandbox.Main(m, setUp)) }

func setUp(ctx context.Context) (func(), error) {
	dir, err := os.MkdirTemp("", "conversion-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	removeDir := func() { _ = os.RemoveAll(dir) }
	if converter, err = newServer(ctx, dir); err != nil {
		return removeDir, err
	}
	if err := converter.start(ctx); err != nil {
		return removeDir, err
	}
	plane, err := sandbox.Start(ctx, sandbox.Options{Name: "conversion"})
	if err != nil {
		return removeDir, err
	}
	stop := func() {
		converter.stop()
		plane.Stop()
		if second.plane != nil {
			second.plane.Stop()
		}
		removeDir()
	}
	if err := setUpSecond(ctx); err != nil {
		return stop, err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s", converter.port, webhook.Path)
	crds, err := sandbox.CRDsWithConversion(apiextensionsv1.WebhookClientConfig{
		URL: &url, CABundle: converter.authority.certificatePEM(),
	})
	if err != nil {
		return stop, err
	}
	if err := plane.Apply(ctx, crds...); err != nil {
		return stop, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, addonv1beta1.Install, corev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return stop, fmt.Errorf("building a scheme: %w", err)
		}
	}
	admin, err = client.NewWithWatch(plane.Admin(), client.Options{Scheme: scheme})
	return stop, err
}

// server is the webhook at a fixed port, with a certificate of its own authority.
type server struct {
	authority *authority
	dir       string
	port      int
	stop      func()
}

func newServer(ctx context.Context, dir string) (*server, error) {
	authority, err := newAuthority()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("%s is no TCP address", listener.Addr())
	}
	s := &server{authority: authority, dir: dir, port: address.Port, stop: func() {}}
	return s, s.renew(1)
}

// renew writes a new serving certificate with the serial number.
func (s *server) renew(serial int64) error {
	certificate, key, err := s.authority.issue(serial)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		// Both files are replaced, as the kubelet replaces those of a Secret.
		fresh := filepath.Join(s.dir, name+".new")
		if err := os.WriteFile(fresh, content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", fresh, err)
		}
		if err := os.Rename(fresh, filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("replacing %s: %w", name, err)
		}
	}
	return nil
}

// start runs the server until stop is called. The context bounds the start only.
func (s *server) start(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: s.port, CertDir: s.dir}, logr.Discard())
	ended := make(chan error, 1)
	go func() { ended <- served.Start(running) }()
	s.stop = func() {
		cancel()
		<-ended
		s.stop = func() {}
	}
	return eventually(ctx, func() error { return served.StartedChecker()(nil) })
}
