// Package credentials_test runs the parts of an agent that get credentials, package join and package addon, against a
// real control plane, which is hub and managed cluster at once: requests are approved by a person (the tests) and
// issued by kube-controller-manager, and the agents are users with the RBAC that we ship and that a hub grants.
package credentials_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// patience is how long anything may take before a test fails.
	patience = 30 * time.Second
	// tick is how often a test looks.
	tick = 20 * time.Millisecond
)

// site is one control plane with all that we ship and the identity that agents have on it.
type site struct {
	plane *sandbox.ControlPlane
	admin client.Client
	// agent is the identity of agents on their own cluster.
	agent *rest.Config
}

// shared is what all tests of the package use.
var shared struct {
	// site is hub and managed cluster of most tests; plane and admin are those of it.
	site   *site
	plane  *sandbox.ControlPlane
	admin  client.Client
	scheme *runtime.Scheme
	// spoke is the identity of agents on their own cluster, bootstrap the one with which they join.
	spoke, bootstrap *rest.Config
	// converter is the conversion webhook of the hub; so every test may speak either version of the add-on API.
	converter *converter
	// second is another control plane, started by the first test that needs it.
	second struct {
		once sync.Once
		site *site
		err  error
	}
}

func TestMain(m *testing.M) {
	logger := logr.Discard()
	if os.Getenv("CREDENTIALS_TEST_LOG") != "" {
		logger = funcr.New(func(_, line string) { fmt.Fprintln(os.Stderr, line) }, funcr.Options{LogTimestamp: true})
	}
	log.SetLogger(logger)
	os.Exit(sandbox.Main(m, start))
}

func start(ctx context.Context) (func(), error) {
	shared.scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, addonv1alpha1.Install, addonv1beta1.Install,
	} {
		if err := add(shared.scheme); err != nil {
			return nil, err
		}
	}
	var err error
	if shared.converter, err = startConverter(ctx); err != nil {
		return nil, err
	}
	stop := func() {
		for _, s := range []*site{shared.site, shared.second.site} {
			if s != nil {
				s.plane.Stop()
			}
		}
		shared.converter.stop()
	}
	shared.site, err = newSite(ctx, sandbox.Options{Name: "credentials"})
	if err != nil {
		return stop, err
	}
	shared.plane, shared.admin, shared.spoke = shared.site.plane, shared.site.admin, shared.site.agent
	shared.bootstrap, err = shared.plane.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	return stop, err
}

// secondSite returns another cluster. Its controllers sign for half a minute only.
func secondSite(t *testing.T) *site {
	t.Helper()
	second := &shared.second
	second.once.Do(func() {
		second.site, second.err = newSite(context.WithoutCancel(t.Context()), sandbox.Options{
			Name: "second", SigningDuration: 30 * time.Second,
		})
	})
	require.NoError(t, second.err)
	return second.site
}

// newSite starts a control plane and prepares it.
func newSite(ctx context.Context, options sandbox.Options) (*site, error) {
	plane, err := sandbox.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &site{plane: plane}
	if err := s.prepare(ctx); err != nil {
		plane.Stop()
		return nil, err
	}
	return s, nil
}

func (s *site) prepare(ctx context.Context) error {
	crds, err := sandbox.CRDsWithConversion(shared.converter.config())
	if err != nil {
		return err
	}
	for _, docs := range [][][]byte{crds, manifests.Hub(), manifests.Klusterlet(), clusterRoles()} {
		if err := s.plane.Apply(ctx, docs...); err != nil {
			return err
		}
	}
	if s.admin, err = client.New(s.plane.Admin(), client.Options{Scheme: shared.scheme}); err != nil {
		return err
	}
	if err := s.withdrawWorkRights(ctx); err != nil {
		return err
	}
	s.agent, err = s.plane.ServiceAccount(ctx, names.NamespaceAgent, names.ServiceAccountAgent)
	return err
}

// withdrawWorkRights takes from the agent what it may do for ManifestWorks: those rights cover Secrets too, and an
// operator may take them away, so that credentials must do with the rules that are there for them.
func (s *site) withdrawWorkRights(ctx context.Context) error {
	for _, name := range []string{"agent", "aggregate", "execution-admin"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:klusterlet-work:" + name},
		}
		if err := s.admin.Delete(ctx, binding); err != nil {
			return fmt.Errorf("withdrawing rights of the agent: %w", err)
		}
	}
	return nil
}

// clusterRoles is what a hub grants to all accepted clusters in their namespaces (contract, registration 1.9).
func clusterRoles() [][]byte {
	return [][]byte{[]byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:managedcluster:registration"}
rules:
- {apiGroups: [addon.open-cluster-management.io], resources: [managedclusteraddons], verbs: [get, list, watch]}
- {apiGroups: [addon.open-cluster-management.io], resources: [managedclusteraddons/status], verbs: [patch, update]}
`)}
}

// acceptance is what a hub grants to one accepted cluster.
func acceptance(cluster string) []byte {
	return fmt.Appendf(nil, `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {open-cluster-management.io/cluster-name: %[1]s}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:managedcluster:%[1]s"}
rules:
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get, list, watch]}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  resourceNames: [%[1]s]
  verbs: [get, list, update, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters/status]
  resourceNames: [%[1]s]
  verbs: [patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "open-cluster-management:managedcluster:%[1]s"}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: "open-cluster-management:managedcluster:%[1]s"
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:open-cluster-management:%[1]s"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "open-cluster-management:managedcluster:%[1]s:registration", namespace: %[1]s}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: open-cluster-management:managedcluster:registration
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:open-cluster-management:%[1]s"}
`, cluster)
}
