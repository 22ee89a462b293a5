package suite

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// ConfigureHub returns the default configuration of a hub manager on a control plane, with a kubeconfig of its
// ServiceAccount, which manifests.Hub must have made. Nothing listens on a port.
func ConfigureHub(t T, p *Plane) hub.Config {
	t.Helper()
	config := hub.DefaultConfig()
	config.Namespace, config.HealthAddress, config.LeaderElect = names.NamespaceHub, "0", false
	identity := p.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager)
	config.Kubeconfig = p.WriteKubeconfig(t, identity, t.TempDir(), "hub-manager")
	return config
}

// StartHub runs a hub manager with the default configuration and changes to it.
func StartHub(t T, p *Plane, changes ...func(*hub.Config)) *Program {
	t.Helper()
	config := ConfigureHub(t, p)
	for _, change := range changes {
		change(&config)
	}
	return RunHub(t, config)
}

// RunHub runs a hub manager.
func RunHub(t T, config hub.Config) *Program {
	t.Helper()
	return StartProgram(t, "the hub manager", func(ctx context.Context) error { return hub.Run(ctx, config) })
}

// ServeWebhook lets a hub manager serve its webhook on a free port of loopback, with a certificate of its own.
func ServeWebhook(t T, config *hub.Config) {
	t.Helper()
	port := FreePort(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tls.crt"), certificate)
	writeFile(t, filepath.Join(dir, "tls.key"), key)
	config.WebhookBindAddress, config.WebhookPort, config.WebhookCertDir = "127.0.0.1", port, dir
	config.WebhookURL = "https://127.0.0.1:" + strconv.Itoa(port) + "/convert"
	config.WebhookCAFile = filepath.Join(dir, "tls.crt")
}

// AsAddOns returns the configuration with which the hub manager acts in the name of the ServiceAccount of add-ons.
func AsAddOns(config *rest.Config) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountAddons,
	}
	return as
}

// WriteKubeconfig writes a kubeconfig into a directory and returns its path.
func (p *Plane) WriteKubeconfig(t T, config *rest.Config, dir, name string) string {
	t.Helper()
	data, err := p.Kubeconfig(config)
	require.NoError(t, err)
	path := filepath.Join(dir, name+".kubeconfig")
	writeFile(t, path, data)
	return path
}

// FreePort returns a port of loopback that nobody listens on.
func FreePort(t T) int {
	t.Helper()
	ports, err := sandbox.FreePorts(1)
	require.NoError(t, err)
	return ports[0]
}

func writeFile(t T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}
