package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
	// relevant is false when there is nothing to deploy. Then only deleting may be set, or configuration, addOn and works.
	relevant bool
	// deleting is the add-on when it is being deleted.
	deleting *addonv1beta1.ManagedClusterAddOn

	addOn   *addonv1beta1.ManagedClusterAddOn
	cluster *clusterv1.ManagedCluster
	about   addon.About
	// host is the cluster that the add-on names as its hosting cluster; nil when it does not exist.
	host *clusterv1.ManagedCluster

	// configuration is the decision about the configuration of the add-on.
	configuration addon.Configuration
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
	if f.configuration, err = r.Configurer.Configure(ctx, f.addOn); err != nil {
		return facts{}, err
	}
	agent, found, err := r.Agents.Agent(ctx, key.Name)
	if err != nil {
		return facts{}, err
	}
	if f.cluster, err = r.clusterOf(ctx, key.Namespace); err != nil {
		return facts{}, err
	}
	if !found || f.cluster == nil || f.cluster.DeletionTimestamp != nil {
		f.works, err = r.listDeployed(ctx, f.addOn)
		return f, err // A cluster that is being deleted gets nothing new.
	}
	f.relevant, f.about = true, agent.About()
	if f.host, err = r.observeHost(ctx, f.addOn); err != nil {
		return facts{}, err
	}
	f.answers = r.ask(ctx, agent, f)
	if f.works, err = r.listWorks(ctx, key); err != nil {
		return facts{}, err
	}
	f.setup.Health, f.pendingHealth = steadyHealth(f)
	f.bindingFacts, err = r.observeBindings(ctx, key, agent, f.answers)
	return f, err
}

// ask asks the agent. Nothing is known before a configuration is chosen.
func (r *Reconciler) ask(ctx context.Context, agent addon.Agent, f facts) answers {
	if err := f.configuration.Err; err != nil {
		return answers{registrationsErr: err, setupErr: err, renderErr: err}
	}
	request := addon.Request{Cluster: f.cluster, Hosting: f.host, AddOn: f.addOn, Choice: f.configuration.Choice}
	resolved, err := agent.Resolve(ctx, request)
	if err != nil {
		return answers{registrationsErr: err, setupErr: err, renderErr: err}
	}
	a := answers{registrations: resolved.Registrations, setup: resolved.Setup}
	a.rendering, a.renderErr = agent.Render(ctx, request)
	return a
}

// listDeployed lists the works that deploy an add-on, whoever wrote them: those in the namespace of its cluster and, for
// a hosted add-on, those in the namespace of the hosting cluster, without its pre-delete hooks.
func (r *Reconciler) listDeployed(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) ([]*workv1.ManifestWork, error) {
	works, err := r.listWorks(ctx, client.ObjectKeyFromObject(addOn))
	if err != nil {
		return nil, err
	}
	works = slices.DeleteFunc(works, func(work *workv1.ManifestWork) bool {
		_, elsewhere := work.Labels[names.LabelAddonNamespace]
		return elsewhere
	})
	if host := addOn.Annotations[names.AnnotationHostingCluster]; host != "" {
		hosted, err := r.listWorks(ctx, types.NamespacedName{Namespace: host, Name: addOn.Name})
		if err != nil {
			return nil, err
		}
		for _, work := range hosted {
			if work.Labels[names.LabelAddonNamespace] == addOn.Namespace {
				works = append(works, work)
			}
		}
	}
	return slices.DeleteFunc(works, func(work *workv1.ManifestWork) bool {
		return strings.HasPrefix(work.Name, hookWorkName(addOn.Name))
	}), nil
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
