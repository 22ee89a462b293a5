package credentials_test

import (
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/join"
)

// join runs the reconciler that joins, with the given bootstrap credential.
func (m *member) join(bootstrap *rest.Config) (stop func()) {
	return m.run(bootstrap, func(mgr ctrl.Manager, hub, _ cluster.Cluster) error {
		return (&join.Reconciler{
			Hub: hub, Agent: mgr, Namespace: m.namespace, Identity: m.identity(), Server: m.server, Joining: true,
			OnCredential: func(c join.Credential) { m.credentials <- c },
		}).SetupWithManager(mgr)
	})
}
