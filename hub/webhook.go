package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/spokelet/spokelet/hub/webhook"
)

// certPoll is how often a missing certificate of the webhook is looked for.
const certPoll = 10 * time.Second

// conversion returns where the API server finds the webhook; nil when it is not configured, or when the file with the
// certificate to trust is not there yet.
func conversion(c Config) (*apiextensionsv1.WebhookClientConfig, error) {
	service, err := c.service()
	if err != nil || (c.WebhookURL == "" && service.Name == "") {
		return nil, err
	}
	ca, err := os.ReadFile(c.WebhookCAFile)
	switch {
	case os.IsNotExist(err):
		return nil, nil //nolint:nilnil // no certificate, no webhook: both are ordinary
	case err != nil:
		return nil, fmt.Errorf("reading the certificate of the webhook: %w", err)
	}
	conv := &apiextensionsv1.WebhookClientConfig{CABundle: ca}
	if c.WebhookURL != "" {
		conv.URL = &c.WebhookURL
		return conv, nil
	}
	conv.Service = &apiextensionsv1.ServiceReference{Namespace: service.Namespace, Name: service.Name}
	return conv, nil
}

// converter serves the conversion as soon as its certificate is there.
type converter struct {
	config Config
	rest   *rest.Config
	server ctrlwebhook.Server
}

// addWebhook has the manager serve the webhook, and announce what it serves besides the conversion.
func addWebhook(mgr ctrl.Manager, c Config, cfg *rest.Config) error {
	server := webhook.NewServer(webhook.Options{
		Host: c.WebhookBindAddress, Port: c.WebhookPort, CertDir: c.WebhookCertDir,
	}, mgr.GetLogger().WithName("hub.webhook"))
	serving := []manager.Runnable{&converter{config: c, rest: cfg, server: server}}
	live, err := uncached(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	if c.WorkAdmission {
		works := &webhook.Works{Limit: c.ManifestLimit}
		works.Register(server)
	}
	if c.InstallCRDs {
		serving = append(serving, &announcer{config: c, client: live, started: server.StartedChecker()})
	}
	for _, runnable := range serving {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("registering the webhook: %w", err)
		}
	}
	return nil
}

// NeedLeaderElection tells the manager that conversion is served in every replica.
func (*converter) NeedLeaderElection() bool { return false }

// Start serves until ctx ends. Without a certificate it waits for one, which it says once.
func (w *converter) Start(ctx context.Context) error {
	logger := ctrl.LoggerFrom(ctx).WithName("hub.webhook")
	if !w.certified() {
		logger.Info("conversion between v1alpha1 and v1beta1 is not served: there is no certificate yet; all else works",
			"directory", w.config.WebhookCertDir)
		if !w.wait(ctx) {
			return nil
		}
		if err := w.announce(ctx); err != nil {
			logger.Error(err, "telling the API server where the conversion is served")
		}
	}
	if err := w.server.Start(ctx); err != nil {
		return fmt.Errorf("serving the conversion webhook: %w", err)
	}
	return nil
}

// certified tells whether certificate and key are there.
func (w *converter) certified() bool {
	for _, file := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(w.config.WebhookCertDir, file)); err != nil {
			return false
		}
	}
	return true
}

// wait returns when the certificate is there, or false when ctx ends.
func (w *converter) wait(ctx context.Context) bool {
	ticker := time.NewTicker(certPoll)
	defer ticker.Stop()
	for !w.certified() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// announce tells the API server where the conversion is served, which could not be told at the start.
func (w *converter) announce(ctx context.Context) error {
	conv, err := conversion(w.config)
	if err != nil || conv == nil || !w.config.InstallCRDs {
		return err
	}
	return InstallCRDs(ctx, w.rest, conv)
}
