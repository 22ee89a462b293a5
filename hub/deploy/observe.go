package deploy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts are the inputs of a pass. The objects belong to the cache and must not be changed.
type facts struct {
	now time.Time
	// home is the namespace of the hub manager.
	home string
	// relevant is false when there is nothing to deploy; then only deleting may be set.
	relevant bool
	// deleting is the add-on when it is being deleted.
	deleting *addonv1beta1.ManagedClusterAddOn

	addOn   *addonv1beta1.ManagedClusterAddOn
	cluster *clusterv1.ManagedCluster
	about   addon.About
	// host is the cluster that the add-on names as its hosting cluster; nil when it does not exist.
	host *clusterv1.ManagedCluster

	answers

	// works are the ManifestWorks in the cluster's namespace with the label of the add-on, of any owner.
	works []*workv1.ManifestWork
	bindingFacts
}

// answers are the answers of the agent; each is unknown while its error is set.
type answers struct {
	registrations    []addonv1beta1.RegistrationConfig
	registrationsErr error
	setup            addon.Setup
	setupErr         error
	// pendingHealth is the probe that the template asks for and that the next rollout brings; setup has the probe in use
	// until then.
	pendingHealth addon.HealthProbe
	rendering     addon.Rendering
	renderErr     error
}

// observe reads the facts about one add-on on one cluster.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), home: cmp.Or(r.Home, names.NamespaceHub)}
	var err error
	f.addOn, err = r.AddOns.GetAddOn(ctx, key)
	switch {
	case err != nil:
		return facts{}, client.IgnoreNotFound(err)
	case f.addOn.DeletionTimestamp != nil:
		return facts{deleting: f.addOn}, nil
	}
	agent, found, err := r.Agents.Agent(ctx, key.Name)
	if err != nil || !found {
		return facts{}, err
	}
	f.cluster, err = r.clusterOf(ctx, key.Namespace)
	if err != nil || f.cluster == nil || f.cluster.DeletionTimestamp != nil {
		return facts{}, err // A cluster that is being deleted gets nothing new.
	}
	f.relevant, f.about = true, agent.About()
	if f.host, err = r.observeHost(ctx, f.addOn); err != nil {
		return facts{}, err
	}
	f.registrations, f.registrationsErr = agent.Registrations(ctx, f.cluster, f.addOn)
	f.setup, f.setupErr = agent.Setup(ctx, f.cluster, f.addOn)
	f.rendering, f.renderErr = agent.Render(ctx, f.cluster, f.addOn)
	if f.works, err = r.listWorks(ctx, key); err != nil {
		return facts{}, err
	}
	f.setup.Health, f.pendingHealth = steadyHealth(f)
	f.bindingFacts, err = r.observeBindings(ctx, key, agent, f.answers)
	return f, err
}

func (r *Reconciler) listWorks(ctx context.Context, key types.NamespacedName) ([]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{names.LabelAddonName: key.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of add-on %s: %w", key, err)
	}
	return reconcile.Pointers(list.Items), nil
}

// observeHost reads the hosting cluster of the add-on; nil when it names none, or one that does not exist.
func (r *Reconciler) observeHost(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (*clusterv1.ManagedCluster, error) {
	name := addOn.Annotations[names.AnnotationHostingCluster]
	if name == "" {
		return nil, nil // no host is a good answer
	}
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{},
		client.UnsafeDisableDeepCopy)
}
