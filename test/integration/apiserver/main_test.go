// Package apiserver_test sends the same random requests to the API server in memory and to a real one, and compares
// the answers, what watches show, and the state after each.
package apiserver_test

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/test/apiserver"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the real control plane, whose API server has the webhook of the hub manager convert, and definitions are the
// definitions of both sides.
var (
	plane       *suite.Plane
	definitions [][]byte
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		converter := httptest.NewTLSServer(webhook.Handler(logr.Discard()))
		t.Cleanup(converter.Close)
		url := converter.URL + webhook.Path
		var err error
		definitions, err = sandbox.CRDsWithConversion(apiextensionsv1.WebhookClientConfig{
			URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: converter.Certificate().Raw}),
		})
		require.NoError(t, err)
		plane = suite.Start(t, sandbox.Options{Name: "apiserver"}, definitions)
		plane.AwaitDefinitions(t)
		awaitCollector(t)
	})
}

// awaitCollector waits until the garbage collector knows the definitions, which it looks for every half a minute.
func awaitCollector(t suite.T) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "collected"}
	for _, one := range []client.Object{
		&workv1.ManifestWork{ObjectMeta: meta}, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: meta}, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: meta},
		&addonv1alpha1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Spec: addonv1alpha1.ClusterManagementAddOnSpec{
				InstallStrategy: addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
			},
		},
		&addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}},
	} {
		require.NoError(t, plane.Client.Create(t.Context(), one))
		require.NoError(t, plane.Client.Delete(t.Context(), one, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		suite.Eventually(t, suite.True("the garbage collector must know the definitions", func() bool {
			return apierrors.IsNotFound(plane.Client.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		}))
	}
}

// memory returns an API server in memory with the definitions of a hub.
func memory(t *testing.T) *apiserver.Server {
	t.Helper()
	resources, err := apiserver.Defined(definitions)
	require.NoError(t, err)
	return apiserver.New(apiserver.Options{Resources: resources, Webhook: webhook.Handler(logr.Discard())})
}
