// Package manager runs the hub manager in the process of a test, on a control plane of the sandbox, as the service
// account that manifests/ ships and with no right beyond its. Tests that need it as a process of its own use fleet.
package manager

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// logVariable names the variable of the environment with the file that receives the log of the hub manager.
const logVariable = "HUB_LOG"

// Configure returns the default configuration for a control plane, with a kubeconfig of the service account of the hub
// manager, which manifests.Hub must have made. Its files go with the control plane. Nothing listens on a port.
func Configure(ctx context.Context, plane *sandbox.ControlPlane) (hub.Config, error) {
	identity, err := plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
	if err != nil {
		return hub.Config{}, err
	}
	kubeconfig, err := plane.Kubeconfig(identity)
	if err != nil {
		return hub.Config{}, err
	}
	config := hub.DefaultConfig()
	config.Kubeconfig, config.Namespace = filepath.Join(plane.Dir, "hub-manager.kubeconfig"), names.NamespaceHub
	config.HealthAddress, config.LeaderElect = "0", false
	if err := os.WriteFile(config.Kubeconfig, kubeconfig, 0o600); err != nil {
		return hub.Config{}, fmt.Errorf("writing the kubeconfig of the hub manager: %w", err)
	}
	return config, nil
}

// AsAddOns returns the configuration with which the hub manager acts in the name of the account of add-ons.
func AsAddOns(config *rest.Config) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountAddons,
	}
	return as
}

// ServeWebhook lets the hub manager serve its webhook on a free port of loopback, with a certificate of its own in the
// directory of the control plane.
func ServeWebhook(plane *sandbox.ControlPlane, config *hub.Config) error {
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("making the certificate of the webhook: %w", err)
	}
	dir := filepath.Join(plane.Dir, "hub-webhook")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of the webhook: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("writing the certificate of the webhook: %w", err)
		}
	}
	config.WebhookBindAddress, config.WebhookPort, config.WebhookCertDir = "127.0.0.1", ports[0], dir
	config.WebhookURL = "https://127.0.0.1:" + strconv.Itoa(ports[0]) + "/convert"
	config.WebhookCAFile = filepath.Join(dir, "tls.crt")
	return nil
}

// Start runs the hub manager until stop is called, which returns when it has ended. The end of ctx does not end it. The
// log goes to the file that HUB_LOG names, if any, and to further writers.
func Start(ctx context.Context, config hub.Config, further ...io.Writer) (stop func()) {
	out := io.MultiWriter(append(further, logFile())...)
	logger := logr.FromSlogHandler(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.Level(-1)}))
	ctrl.SetLogger(logger)
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.WithoutCancel(ctx), logger))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := hub.Run(ctx, config); err != nil {
			fmt.Fprintln(os.Stderr, "the hub manager ended:", err)
		}
	}()
	return func() { cancel(); <-ended }
}

// logFile is the file that HUB_LOG names.
func logFile() io.Writer {
	path := os.Getenv(logVariable)
	if path == "" {
		return io.Discard
	}
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "no log of the hub manager: %v\n", err)
		return io.Discard
	}
	return file
}
