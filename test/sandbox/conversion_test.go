package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

func TestCRDsWithConversion(t *testing.T) {
	url := "https://127.0.0.1:9443/convert"
	path := "/elsewhere"
	tests := map[string]struct {
		conv apiextensionsv1.WebhookClientConfig
		want apiextensionsv1.WebhookClientConfig
	}{
		"a URL is taken as it is": {
			conv: apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("ca")},
			want: apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("ca")},
		},
		"a service gets our path": {
			conv: apiextensionsv1.WebhookClientConfig{Service: service(nil), CABundle: []byte("ca")},
			want: apiextensionsv1.WebhookClientConfig{
				Service: service(new(manifests.ConvertPath)), CABundle: []byte("ca"),
			},
		},
		"a service keeps its own path": {
			conv: apiextensionsv1.WebhookClientConfig{Service: service(&path)},
			want: apiextensionsv1.WebhookClientConfig{Service: service(&path)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docs, err := sandbox.CRDsWithConversion(test.conv)
			require.NoError(t, err)
			plain := definitions(t, manifests.CRDs())
			for i, crd := range definitions(t, docs) {
				switch crd.Spec.Names.Kind {
				case "ClusterManagementAddOn", "ManagedClusterAddOn":
					assert.Equal(t, &apiextensionsv1.CustomResourceConversion{
						Strategy: apiextensionsv1.WebhookConverter,
						Webhook: &apiextensionsv1.WebhookConversion{
							ClientConfig: &test.want, ConversionReviewVersions: []string{"v1"},
						},
					}, crd.Spec.Conversion)
					crd.Spec.Conversion = nil
				}
				assert.Equal(t, plain[i], crd, "only the stanza differs")
			}
		})
	}
}

func TestCRDsWithConversionRefusesToGuess(t *testing.T) {
	url := "https://127.0.0.1:9443/convert"
	for name, conv := range map[string]apiextensionsv1.WebhookClientConfig{
		"neither": {},
		"both":    {URL: &url, Service: service(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sandbox.CRDsWithConversion(conv)
			assert.ErrorContains(t, err, "either a URL or a service")
		})
	}
}

func service(path *string) *apiextensionsv1.ServiceReference {
	return &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "hub", Path: path}
}

func definitions(t *testing.T, docs [][]byte) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, doc := range docs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.UnmarshalStrict(doc, crd))
		all = append(all, crd)
	}
	return all
}
