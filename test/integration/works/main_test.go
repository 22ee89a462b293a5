// Package works_test runs the hub manager, as the service account that manifests/ ships, on a real control plane, and
// looks at which ManifestWorks may be written, and what becomes of those that have done what they were for.
package works_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with a hub manager on it.
var plane *suite.Plane

// announce applies the webhook configuration of ManifestWorks as an administrator does, with the address and the CA of
// a hub manager.
func announce(t suite.T, c *hub.Config) {
	t.Helper()
	for _, file := range manifests.WorkWebhook() {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		require.NoError(t, yaml.UnmarshalStrict(file, configuration))
		at := &configuration.Webhooks[0].ClientConfig
		url := strings.TrimSuffix(c.WebhookURL, "/convert") + *at.Service.Path
		ca, err := os.ReadFile(c.WebhookCAFile)
		require.NoError(t, err)
		*at = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
		require.NoError(t, plane.Client.Create(t.Context(), configuration))
	}
}

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "works"}, manifests.SpokeCRDs(), manifests.Klusterlet(),
			manifests.CRDs(), manifests.WorksWithoutExecutor(), manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.InstallCRDs, c.LeaderElect = true, true
			suite.ServeWebhook(t, c)
			announce(t, c)
		})
	})
}
