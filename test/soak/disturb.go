package soak

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// readEvery is how often the client reads, and readTimeout how long it waits for an answer.
	readEvery, readTimeout = time.Second, 5 * time.Second
)

// rotation is a soak that runs.
type rotation struct {
	fleet   *fleet.Fleet
	cluster *fleet.Cluster
	log     io.Writer

	mu     sync.Mutex
	report RotationReport
	// away reports whether the hub is away, and turns how often it went or came.
	away  bool
	turns int
	// requests are the certificate requests that were counted.
	requests map[types.UID]bool
}

// kill kills the agent after each pause and starts it again.
func (r *rotation) kill(ctx context.Context, pauses []time.Duration) error {
	for _, pause := range pauses {
		if !fleet.Pause(ctx, pause) {
			return nil
		}
		r.cluster.Agent.Kill()
		if err := r.cluster.Agent.Start(); err != nil {
			return fmt.Errorf("starting the agent again: %w", err)
		}
		r.mu.Lock()
		r.report.Kills++
		r.mu.Unlock()
	}
	return nil
}

// cut takes the hub away after each pause.
func (r *rotation) cut(ctx context.Context, pauses []time.Duration) error {
	defer r.fleet.Link.Mend()
	for _, pause := range pauses {
		if !fleet.Pause(ctx, pause) {
			return nil
		}
		r.turn(true)
		r.fleet.Link.Cut()
		if !fleet.Pause(ctx, outage) {
			return nil
		}
		r.fleet.Link.Mend()
		r.turn(false)
	}
	return nil
}

func (r *rotation) turn(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away, r.turns = away, r.turns+1
	if away {
		r.report.Outages++
	}
}

// read is the client of the add-on: every second it takes the credential as it stands on its cluster, as a mounted
// Secret would show it, and reads from the hub.
func (r *rotation) read(ctx context.Context) error {
	addons, clusters := map[string]bool{}, map[string]bool{}
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		if err := r.readOnce(ctx, addons, clusters); err != nil && ctx.Err() == nil {
			return err
		}
		r.mu.Lock()
		r.report.AddonCertificates, r.report.ClusterCertificates = len(addons), len(clusters)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *rotation) readOnce(ctx context.Context, addons, clusters map[string]bool) error {
	own, err := credentialOf(ctx, r.cluster, names.NamespaceAgent, names.SecretHub)
	if err != nil {
		return fmt.Errorf("reading the credential of the agent: %w", err)
	}
	secret, err := credentialOf(ctx, r.cluster, names.NamespaceAgentAddon, rotatingAddon+"-hub-kubeconfig")
	if err != nil {
		return fmt.Errorf("reading the credential of the add-on: %w", err)
	}
	r.look("the agent", own, clusters)
	r.look("the add-on", secret, addons)

	r.mu.Lock()
	away, turns := r.away, r.turns
	r.mu.Unlock()
	err = useCredential(ctx, secret, r.cluster.Name)
	if ctx.Err() != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Reads++
	switch disturbed := away || r.turns != turns; {
	case disturbed:
		r.report.ReadsInOutage++
	case err != nil:
		r.violate("the add-on could not read from the hub: %v", err)
	}
	return nil
}

// look notes a certificate in use.
func (r *rotation) look(whose string, secret *corev1.Secret, seen map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	expires, err := expiry(secret.Data[csr.KeyCertificate])
	if err != nil {
		r.violate("the certificate of %s cannot be read: %v", whose, err)
		return
	}
	seen[string(secret.Data[csr.KeyCertificate])] = true
	left := time.Until(expires)
	r.report.Least = min(r.report.Least, left)
	if left <= 0 {
		r.violate("the certificate of %s expired at %s", whose, expires.Format(time.RFC3339))
	}
}

func (r *rotation) violate(format string, args ...any) {
	what := time.Now().UTC().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...)
	r.report.Violations = append(r.report.Violations, what)
	fmt.Fprintln(r.log, what)
}

func expiry(certificate []byte) (time.Time, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return time.Time{}, errors.New("it is not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, err
	}
	return parsed.NotAfter, nil
}

// useCredential reads from the hub what the add-on may read, with the files of its Secret as a pod has them mounted and
// nothing else, over a connection of its own.
func useCredential(ctx context.Context, secret *corev1.Secret, namespace string) error {
	mount, err := os.MkdirTemp("", "spokelet-mount-")
	if err != nil {
		return fmt.Errorf("mounting the credential: %w", err)
	}
	defer func() { _ = os.RemoveAll(mount) }()
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(mount, key), value, 0o600); err != nil {
			return fmt.Errorf("mounting the credential: %w", err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(mount, csr.KeyKubeconfig))
	if err != nil {
		return err
	}
	// The files are read once: this client lives for one request.
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	config.CertFile, config.KeyFile, config.CAFile, config.Timeout = "", "", "", readTimeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	return err
}
