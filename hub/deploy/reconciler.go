package deploy

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.deploy"

// defaultWorkers is the default of Reconciler.Workers.
const defaultWorkers = 8

// Reconciler deploys the agents of add-ons.
type Reconciler struct {
	// Client reads clusters, ManifestWorks and RoleBindings of the hub from a cache, and writes ManifestWorks.
	Client client.Client
	// Bindings writes RoleBindings. The hub manager writes them as names.ServiceAccountAddons, so that the API server
	// refuses every role that no administrator granted to that account.
	Bindings client.Client
	// Live reads from the API server, which happens only when the cache is or may be behind.
	Live client.Reader
	// Accounts reads the right to request tokens of a ServiceAccount; nil means Client.
	Accounts client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Agents finds the agents of add-ons.
	Agents addon.Lookup
	// Configurer decides the configurations of add-ons.
	Configurer addon.Configurer
	// Watch adds the watches of all that the Configurer looks at.
	Watch func(*builder.Builder) *builder.Builder
	// Recorder records Events on add-ons about removed finalizers; nil records none.
	Recorder events.EventRecorder
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
	// Account is the ServiceAccount, as namespace/name, as which Bindings writes, for messages; empty means
	// names.ServiceAccountAddons in Home.
	Account string
	// Gates knows which add-ons depend on others; nil for a program that leaves that to the hub manager.
	Gates *gate.Reader
	// Hosting is how much a hosting cluster has to say.
	Hosting hosting.Rules
	// AllNamespaces binds roles in all namespaces, too, where a template asks for that and an administrator consented. It
	// needs ClusterRoleBindings in the cache, and the right to create access reviews.
	AllNamespaces bool
	// Sets reads ManagedClusterSets, of add-ons that ask for their hosting cluster.
	Sets client.Reader
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time; zero means 8.
	Workers int
	// Version is the version of the code that renders; empty means that of the build.
	Version string

	// verified has, for each add-on whose works another version rendered, the records of works that this version renders
	// the same. They are rendered once in the life of the process, and stay as they are on the hub.
	verified kept.Map[types.NamespacedName, works.Sum]
	asksFor  asksFor
	made     made
	passed   passed
	accepts  accepts
	modes    modes
}

// account returns the ServiceAccount as which bindings are written, as namespace/name.
func (r *Reconciler) account() string {
	return cmp.Or(r.Account, cmp.Or(r.Home, names.NamespaceHub)+"/"+names.ServiceAccountAddons)
}

// clusterOf reads a cluster from the cache, unless the pass has that of the API server; nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, f facts, name string) (*clusterv1.ManagedCluster, error) {
	if live, is := f.live[name]; is {
		return live, nil
	}
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}
