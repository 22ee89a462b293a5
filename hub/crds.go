package hub

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/definition"
	"github.com/spokelet/spokelet/manifests"
)

// fieldManager is the field manager of the hub manager.
const fieldManager = "spokelet-hub"

// convertedKinds are the definitions of add-ons that may have two versions. Those of AddOnTemplates have the same
// fields.
func convertedKinds() []definition.Kind {
	return []definition.Kind{
		{Name: "managedclusteraddons.addon.open-cluster-management.io"},
		{Name: "clustermanagementaddons.addon.open-cluster-management.io"},
		{Name: "addontemplates.addon.open-cluster-management.io", SameFields: true},
	}
}

// InstallCRDs applies the CustomResourceDefinitions of the hub and returns when all are served. It returns findings
// about definitions that it left unchanged. With conv, the webhook at that address converts add-ons; without it, an
// existing conversion stays.
func InstallCRDs(
	ctx context.Context, cfg *rest.Config, conv *apiextensionsv1.WebhookClientConfig,
) ([]definition.Finding, error) {
	c, err := definitionsClient(cfg)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("building the client for discovery: %w", err)
	}
	installer := &definition.Installer{Client: c, Discovery: d, Kinds: convertedKinds(), Ours: conv}
	return installer.Install(ctx, manifests.CRDs())
}

// definitionsClient returns a client without a cache for definitions.
func definitionsClient(cfg *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client for definitions: %w", err)
	}
	return c, nil
}

// newKeeper returns the keeper of the conversion. silent returns why the webhook does not answer.
func newKeeper(mgr ctrl.Manager, c Config, s *serving, silent func() error) (*definition.Keeper, error) {
	definitions, err := definitionsClient(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	return &definition.Keeper{
		Client: definitions, Recorder: mgr.GetEventRecorder(definition.Name), Elected: mgr.Elected(),
		Clock: clock.RealClock{}, Kinds: convertedKinds(), Write: c.InstallCRDs,
		Webhook: definition.Webhook{
			Ours: s.client, Silent: silent, Refresh: s.source.Refresh, Changed: s.source.Changed,
		},
	}, nil
}
