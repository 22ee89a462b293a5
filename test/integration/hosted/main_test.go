// Package hosted_test runs agents on a hosting cluster: each in a namespace of its own there, as the Deployment that we
// ship starts it, with the rights that we ship for the hosting cluster and for the managed cluster, and no others. One
// control plane is hub and hosting cluster, another one the managed cluster.
package hosted_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// What the tests share.
var (
	// host is the hub and the hosting cluster, managed the managed cluster.
	host, managed *suite.Plane
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		host = suite.Start(t, sandbox.Options{Name: "hosting"},
			manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs(), manifests.Klusterlet())
		managed = suite.Start(t, sandbox.Options{Name: "managed", Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		withdraw(t, host)
		withdraw(t, managed)
		suite.StartHub(t, host)
	})
}

// withdraw takes from the ServiceAccount on a managed cluster what klusterlet-hosted/managed leaves out: the namespace
// with the agent's own credential is on the hosting cluster.
func withdraw(t suite.T, plane *suite.Plane) {
	t.Helper()
	own := metav1.ObjectMeta{
		Namespace: names.NamespaceAgent, Name: "open-cluster-management:management:klusterlet-registration:agent",
	}
	for _, o := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: own}, &rbacv1.Role{ObjectMeta: own}} {
		require.NoError(t, plane.Client.Delete(t.Context(), o))
	}
}
