package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

// CRDsWithConversion returns the CustomResourceDefinitions of the hub with ClusterManagementAddOn and
// ManagedClusterAddOn converted by the webhook of the hub at conv, which names either a URL or a service. The path of a
// service defaults to manifests.ConvertPath.
func CRDsWithConversion(conv apiextensionsv1.WebhookClientConfig) ([][]byte, error) {
	if (conv.URL == nil) == (conv.Service == nil) {
		return nil, errors.New("the conversion webhook needs either a URL or a service, and not both")
	}
	if conv.Service != nil && conv.Service.Path == nil {
		conv = *conv.DeepCopy()
		convert := manifests.ConvertPath
		conv.Service.Path = &convert
	}
	docs := manifests.CRDs()
	for i, doc := range docs {
		converted, err := withConversion(doc, conv)
		if err != nil {
			return nil, err
		}
		docs[i] = converted
	}
	return docs, nil
}

// withConversion puts the conversion stanza into a definition of an add-on kind whose versions differ, and returns
// every other definition as it is.
func withConversion(doc []byte, conv apiextensionsv1.WebhookClientConfig) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(doc, &crd); err != nil {
		return nil, fmt.Errorf("decoding a definition: %w", err)
	}
	meta, _ := crd["metadata"].(map[string]any)
	spec, _ := crd["spec"].(map[string]any)
	name, _ := meta["name"].(string)
	switch name {
	case "clustermanagementaddons.addon.open-cluster-management.io",
		"managedclusteraddons.addon.open-cluster-management.io":
	default:
		return doc, nil
	}
	raw, err := json.Marshal(apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &conv,
			ConversionReviewVersions: []string{"v1"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the conversion of %s: %w", name, err)
	}
	spec["conversion"] = json.RawMessage(raw)
	out, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", name, err)
	}
	return out, nil
}
