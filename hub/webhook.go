package hub

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/spokelet/spokelet/hub/certificate"
	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/manifests"
)

// serving is the address and the certificate of the webhook.
type serving struct {
	address *apiextensionsv1.WebhookClientConfig
	source  *certificate.Source
}

// newServing returns the address of the webhook, and its certificate if it exists.
func newServing(ctx context.Context, c Config, cfg *rest.Config) (*serving, error) {
	address, names, err := c.webhookAddress()
	if err != nil {
		return nil, err
	}
	ends, err := expiry.New(metrics.Registry, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	s := &serving{address: address, source: &certificate.Source{
		Files: certificate.Files{Dir: c.WebhookCertDir, CA: c.WebhookCAFile}, Clock: clock.RealClock{}, Ends: ends,
	}}
	if address != nil && c.InstallCRDs && c.WebhookSecret != "" {
		secrets, err := uncached(cfg, nil)
		if err != nil {
			return nil, err
		}
		s.source.Store = &certificate.Store{
			Client: secrets, Key: types.NamespacedName{Namespace: c.Namespace, Name: c.WebhookSecret}, Names: names,
			Clock: clock.RealClock{}, Random: rand.Reader,
		}
	}
	if s.served() {
		if err := s.source.Load(ctx); err != nil {
			ctrl.LoggerFrom(ctx).WithName("hub.webhook").Error(err, "there is no certificate of the webhook yet")
		}
	}
	return s, nil
}

// served reports whether the webhook is configured.
func (s *serving) served() bool { return s.source.Files.Dir != "" || s.source.Store != nil }

// client returns the client configuration of the webhook; nil without a certificate or an address.
func (s *serving) client() *apiextensionsv1.WebhookClientConfig {
	trusted, found := s.source.Trusted()
	if !found || s.address == nil {
		return nil
	}
	client := s.address.DeepCopy()
	client.CABundle = trusted
	return client
}

// webhookAddress returns the address of the webhook for the API server and its DNS names; nil when it is not
// configured.
func (c *Config) webhookAddress() (*apiextensionsv1.WebhookClientConfig, []string, error) {
	if c.WebhookURL != "" {
		parsed, err := url.Parse(c.WebhookURL)
		if err != nil {
			return nil, nil, fmt.Errorf("--webhook-url: %w", err)
		}
		return &apiextensionsv1.WebhookClientConfig{URL: &c.WebhookURL}, []string{parsed.Hostname()}, nil
	}
	service, err := c.service()
	if err != nil || service.Name == "" {
		return nil, nil, err
	}
	path, inside := manifests.ConvertPath, service.Name+"."+service.Namespace+".svc"
	return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: service.Namespace, Name: service.Name, Path: &path,
	}}, []string{inside, inside + ".cluster.local", service.Name + "." + service.Namespace}, nil
}

// converter serves the conversion as soon as there is a certificate. The manager starts it before its caches, which may
// need the conversion.
type converter struct {
	ctrlwebhook.Server

	serving *serving
}

// addWebhook adds the webhook and its certificate to the manager.
func addWebhook(mgr ctrl.Manager, c Config, s *serving) (ctrlwebhook.Server, error) {
	var served tls.Config
	if err := c.TLS.Apply(&served); err != nil {
		return nil, fmt.Errorf("preparing the webhook: %w", err)
	}
	clients, err := clientCAs(c.WebhookClientCA)
	if err != nil {
		return nil, err
	}
	counters, err := webhook.NewCounters(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("preparing the webhook: %w", err)
	}
	server := webhook.NewServer(webhook.Options{
		Host: c.WebhookBindAddress, Port: c.WebhookPort, Certificate: s.source.Certificate,
		MinVersion: served.MinVersion, CipherSuites: served.CipherSuites, ClientCAs: clients, Counters: counters,
	}, mgr.GetLogger().WithName("hub.webhook"))
	if c.WorkAdmission {
		works := &webhook.Works{Limit: c.ManifestLimit}
		works.Register(server)
	}
	for _, runnable := range []manager.Runnable{s.source, &converter{Server: server, serving: s}} {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("registering the webhook: %w", err)
		}
	}
	return server, nil
}

// clientCAs reads the authorities of clients; nil without a file.
func clientCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("--webhook-client-ca: %s contains no certificate", file)
	}
	return pool, nil
}

// Start serves until ctx ends. It waits for a certificate, and logs that once.
func (w *converter) Start(ctx context.Context) error {
	for said := false; ; said = true {
		changed := w.serving.source.Changed()
		if _, found := w.serving.source.Trusted(); found {
			break
		}
		if !said {
			ctrl.LoggerFrom(ctx).WithName("hub.webhook").Info("the webhook is not served: there is no certificate yet",
				"directory", w.serving.source.Files.Dir)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
	if err := w.Server.Start(ctx); err != nil {
		return fmt.Errorf("serving the conversion webhook: %w", err)
	}
	return nil
}
