package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/util/cert"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// webhookServing is where the hub manager serves the conversion webhook: an address of its own and a certificate that
// the API server of the hub is told to trust.
type webhookServing struct {
	port    int
	certDir string
	caFile  string
}

// InstallHub applies what manifests/ ships for the hub, and starts the hub manager with it: it installs the CRDs and
// serves their conversion. It returns when the hub manager says that it is ready.
func (f *Fleet) InstallHub(ctx context.Context, note func(string), extraArgs ...string) error {
	present, err := Present(f.binaries)
	if err != nil {
		return err
	}
	return f.InstallHubOf(ctx, present, note, extraArgs...)
}

// InstallHubOf is InstallHub with what another version ships.
func (f *Fleet) InstallHubOf(ctx context.Context, release Release, note func(string), extraArgs ...string) error {
	if err := f.Hub.Apply(ctx, release.Hub...); err != nil {
		return fmt.Errorf("applying the manifests of the hub: %w", err)
	}
	if err := f.serveWebhook(); err != nil {
		return err
	}
	identity, err := f.Hub.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
	if err != nil {
		return fmt.Errorf("getting a token for the hub manager: %w", err)
	}
	if f.Host != "" {
		identity.Host = f.Host
	}
	kubeconfig, err := f.Kubeconfig(f.Hub, identity, "hub-manager")
	if err != nil {
		return err
	}
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return err
	}
	f.health = ports[0]
	if f.manager, err = f.own("hub manager", filepath.Join(release.Binaries, "spokelet-hub"), append([]string{
		"--kubeconfig=" + kubeconfig,
		"--install-crds",
		"--leader-elect=false",
		"--auto-approved-csr-users=" + bootstrapUser(),
		"--webhook-bind-address=127.0.0.1",
		"--webhook-port=" + strconv.Itoa(f.webhook.port),
		"--webhook-cert-dir=" + f.webhook.certDir,
		"--webhook-url=https://127.0.0.1:" + strconv.Itoa(f.webhook.port) + "/convert",
		"--webhook-ca-file=" + f.webhook.caFile,
		"--health-probe-bind-address=127.0.0.1:" + strconv.Itoa(f.health),
	}, extraArgs...)...); err != nil {
		return err
	}
	if err := f.manager.Start(); err != nil {
		return err
	}
	return f.awaitHub(ctx, note)
}

// awaitHub waits until the hub manager says that it is ready, and its webhook answers.
func (f *Fleet) awaitHub(ctx context.Context, note func(string)) error {
	return Wait(ctx, "the hub manager to be ready", note, func(ctx context.Context) error {
		if err := ready(ctx, f.health, f.manager); err != nil {
			return err
		}
		return f.webhookAnswers(ctx)
	})
}

// HubManager returns the process of the hub manager.
func (f *Fleet) HubManager() *sandbox.Process { return f.manager }

// webhookAnswers reports whether the conversion webhook accepts connections.
func (f *Fleet) webhookAnswers(ctx context.Context) error {
	ca, err := os.ReadFile(f.webhook.caFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.webhook.port)))
	if err != nil {
		return NotYet("the conversion webhook does not answer: %w", err)
	}
	return conn.Close()
}

// StartAgent applies what manifests/ ships for a managed cluster and starts our agent for it, with a bootstrap
// kubeconfig for the hub and a token of the agent's ServiceAccount for its own cluster.
func (f *Fleet) StartAgent(ctx context.Context, cluster *Cluster, extraArgs ...string) error {
	present, err := Present(f.binaries)
	if err != nil {
		return err
	}
	return f.StartAgentOf(ctx, present, cluster, extraArgs...)
}

// StartAgentOf is StartAgent with what another version ships.
func (f *Fleet) StartAgentOf(ctx context.Context, release Release, cluster *Cluster, extraArgs ...string) error {
	if err := f.prepareCluster(ctx, release, cluster); err != nil {
		return err
	}
	bootstrapPath, err := f.Bootstrap(ctx, cluster.Name)
	if err != nil {
		return err
	}
	own, err := cluster.ControlPlane.ServiceAccount(ctx, names.NamespaceAgent, names.ServiceAccountAgent)
	if err != nil {
		return fmt.Errorf("getting a token for the agent of cluster %s: %w", cluster.Name, err)
	}
	if cluster.Host != "" {
		own.Host = cluster.Host
	}
	ownPath, err := f.Kubeconfig(cluster.ControlPlane, own, cluster.Name+"-agent")
	if err != nil {
		return err
	}
	cluster.Agent, err = f.own("agent of "+cluster.Name, filepath.Join(release.Binaries, "spokelet"), append([]string{
		"--spoke-cluster-name=" + cluster.Name,
		"--bootstrap-kubeconfig=" + bootstrapPath,
		"--kubeconfig=" + ownPath,
		"--namespace=" + names.NamespaceAgent,
		"--leader-elect=false",
	}, extraArgs...)...)
	if err != nil {
		return err
	}
	return cluster.Agent.Start()
}

// Bootstrap writes a bootstrap kubeconfig for a cluster and returns its path.
func (f *Fleet) Bootstrap(ctx context.Context, cluster string) (string, error) {
	bootstrap, err := f.Hub.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	if err != nil {
		return "", fmt.Errorf("getting a bootstrap token: %w", err)
	}
	if f.Link != nil {
		bootstrap.Host = f.Link.Host
	}
	if c := f.clusters[cluster]; c != nil && c.HubHost != "" {
		bootstrap.Host = c.HubHost
	}
	return f.Kubeconfig(f.Hub, bootstrap, cluster+"-bootstrap")
}

// Accept accepts a cluster as an administrator does, with labels for placements to select by.
func (f *Fleet) Accept(ctx context.Context, name string, labels map[string]string) error {
	return Wait(ctx, "cluster "+name+" to be accepted", nil, func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := f.HubClient.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return err
		}
		cluster.Spec.HubAcceptsClient = true
		if cluster.Labels == nil {
			cluster.Labels = map[string]string{}
		}
		for key, value := range labels {
			cluster.Labels[key] = value
		}
		return f.HubClient.Update(ctx, &cluster)
	})
}

// process prepares a program of the fleet; its log is named after it.
func (f *Fleet) process(name, path string, args ...string) *sandbox.Process {
	p := &sandbox.Process{
		Name: name, Path: path, Args: args,
		LogPath: filepath.Join(f.dir, logName(name)),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = append(f.processes, p)
	return p
}

// serveWebhook picks a port for the webhook and writes a serving certificate for it.
func (f *Fleet) serveWebhook() error {
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return err
	}
	port := ports[0]
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("making a certificate for the webhook: %w", err)
	}
	dir := filepath.Join(f.dir, "webhook")
	f.webhook = webhookServing{port: port, certDir: dir, caFile: filepath.Join(dir, "tls.crt")}
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), certPEM, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), keyPEM, 0o600),
	)
}

// ready asks the health port of a process whether it is ready, and says why when it ended instead.
func ready(ctx context.Context, port int, p *sandbox.Process) error {
	if err := p.Exited(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", port)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return NotYet("%s does not answer: %w", p.Name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return NotYet("%s answers %s", p.Name, answer.Status)
	}
	return nil
}

// bootstrapUser is the name under which the hub sees the bootstrap token.
func bootstrapUser() string {
	return "system:serviceaccount:" + names.NamespaceBootstrap + ":" + names.ServiceAccountBootstrap
}
