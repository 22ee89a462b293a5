package deploy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeDeletion reads the facts about an add-on with finalizers.
func (r *Reconciler) observeDeletion(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (deletionFacts, error) {
	f := deletionFacts{now: r.Clock.Now(), addOn: addOn, managed: true}
	agent, found, err := r.Agents.Agent(ctx, addOn.Name)
	if err != nil {
		return f, err
	}
	f.ours = found
	if !found {
		_, err := r.AddOns.GetClusterManagementAddOn(ctx, addOn.Name)
		if client.IgnoreNotFound(err) != nil {
			return f, err
		}
		f.managed = err == nil
		f.ours = !f.managed && ofTemplates(addOn, confighash.Template())
	}
	if !f.ours {
		return f, nil
	}
	if f.cluster, err = r.clusterOf(ctx, addOn.Namespace); err != nil {
		return f, err
	}
	if f.namespaceDeleting, err = r.namespaceDeleting(ctx, addOn.Namespace); err != nil {
		return f, err
	}
	if found && f.cluster != nil {
		f.rendering, f.renderErr = r.renderDeleting(ctx, agent, f.cluster, addOn)
	}
	return f, r.observeDeletionWorks(ctx, &f)
}

// renderDeleting renders an add-on that is being deleted from the content that it has.
func (r *Reconciler) renderDeleting(
	ctx context.Context, agent addon.Agent, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Rendering, error) {
	configuration, err := r.Configurer.Configure(ctx, addOn)
	if err == nil {
		err = configuration.Err
	}
	if err != nil {
		return addon.Rendering{}, err
	}
	return agent.Render(ctx, addon.Request{Cluster: cluster, AddOn: addOn, Choice: configuration.Choice})
}

// clusterOf reads a cluster; nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}

// namespaceDeleting reports whether nothing can be created in a namespace any more.
func (r *Reconciler) namespaceDeleting(ctx context.Context, name string) (bool, error) {
	namespace, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, reconcile.Namespace())
	return err == nil && (namespace == nil || namespace.DeletionTimestamp != nil), err
}

// observeDeletionWorks reads the works that finalizers guard. Works of hosted mode may be in any namespace; they are
// listed only for an add-on with such a finalizer.
func (r *Reconciler) observeDeletionWorks(ctx context.Context, f *deletionFacts) error {
	works, err := r.listWorks(ctx, client.ObjectKeyFromObject(f.addOn))
	if err != nil {
		return err
	}
	for _, work := range works {
		if work.Name == hookWorkName(f.addOn.Name) {
			f.hook = work
		}
	}
	if len(finalizersOf(f.addOn, finalizerHostedHook, finalizerHostedHookOld, finalizerHostedObjects,
		finalizerHostedObjectsOld)) == 0 {
		return nil
	}
	var list workv1.ManifestWorkList
	err = r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingLabels{
		names.LabelAddonName: f.addOn.Name, names.LabelAddonNamespace: f.addOn.Namespace,
	})
	if err != nil {
		return fmt.Errorf("listing the ManifestWorks of add-on %s on hosting clusters: %w", f.addOn.Name, err)
	}
	f.hosts = map[string]bool{}
	for i := range list.Items {
		work := &list.Items[i]
		switch hook, objects := hostedKind(f.addOn, work); {
		case hook:
			f.hostedHooks = append(f.hostedHooks, work)
			host, err := r.clusterOf(ctx, work.Namespace)
			if err != nil {
				return err
			}
			f.hosts[work.Namespace] = host != nil && host.DeletionTimestamp == nil
		case objects:
			f.hosted = append(f.hosted, work)
		}
	}
	return nil
}
