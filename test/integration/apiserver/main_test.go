// Package apiserver_test sends the same random requests to the API server in memory and to a real one, and compares
// the answers, what watches show, and the state after each.
package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/apiserver"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "apiserver"}, manifests.CRDs())
		plane.AwaitDefinitions(t)
		awaitCollector(t)
	})
}

// awaitCollector waits until the garbage collector knows the definitions, which it looks for every half a minute.
func awaitCollector(t suite.T) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "collected"}
	for _, one := range []client.Object{
		&workv1.ManifestWork{ObjectMeta: meta}, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}},
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
	resources, err := apiserver.Defined(manifests.CRDs())
	require.NoError(t, err)
	return apiserver.New(apiserver.Options{Resources: resources})
}
