package manifests

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate go run -C .. ./manifests/gen

//go:embed crds
var crds embed.FS

// ConvertPath is the path at which the hub serves the conversion of add-ons.
const ConvertPath = "/convert"

// CRDs returns the CustomResourceDefinitions of the hub, one YAML document each, without a conversion stanza. With
// these alone an API server serves the add-on kinds in v1beta1 by renaming the version only, which drops the fields
// that differ: where anybody uses v1beta1, install CRDsWithConversion.
func CRDs() [][]byte { return documents("crds/hub") }

// SpokeCRDs returns the CustomResourceDefinitions of a managed cluster, one YAML document each.
func SpokeCRDs() [][]byte { return documents("crds/spoke") }

// CRDsWithConversion returns the documents of CRDs with ClusterManagementAddOn and ManagedClusterAddOn converted by
// the webhook of the hub at conv, which names either a URL or a service. The path of a service defaults to ConvertPath.
func CRDsWithConversion(conv apiextensionsv1.WebhookClientConfig) ([][]byte, error) {
	if (conv.URL == nil) == (conv.Service == nil) {
		return nil, errors.New("the conversion webhook needs either a URL or a service, and not both")
	}
	if conv.Service != nil && conv.Service.Path == nil {
		conv = *conv.DeepCopy()
		convert := ConvertPath
		conv.Service.Path = &convert
	}
	docs := CRDs()
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

// documents reads the embedded files of a folder, ordered by name. An embedded folder cannot fail to be read: its
// content is fixed when we are built, and a test reads all of it.
func documents(dir string) [][]byte {
	entries, _ := fs.ReadDir(crds, dir)
	docs := make([][]byte, 0, len(entries))
	for _, entry := range entries {
		doc, err := crds.ReadFile(path.Join(dir, entry.Name()))
		if err == nil {
			docs = append(docs, doc)
		}
	}
	return docs
}
