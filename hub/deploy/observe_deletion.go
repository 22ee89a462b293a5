package deploy

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeDeletion reads the facts about an add-on with finalizers. live are clusters that the API server has.
func (r *Reconciler) observeDeletion(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, live map[string]*clusterv1.ManagedCluster,
) (deletionFacts, error) {
	f := deletionFacts{facts: facts{now: r.Clock.Now(), addOn: addOn, rules: r.Hosting, live: live}, managed: true}
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
	if f.cluster, err = r.clusterOf(ctx, f.facts, addOn.Namespace); err != nil {
		return f, err
	}
	if f.namespaceDeleting, err = r.namespaceDeleting(ctx, addOn.Namespace); err != nil {
		return f, err
	}
	if f.host, err = r.observeHost(ctx, f.facts); err != nil {
		return f, err
	}
	if f.works, err = r.listWorks(ctx, addOn); err != nil {
		return f, err
	}
	if found && f.cluster != nil {
		r.askDeleting(ctx, agent, &f.facts)
	}
	f.hosts = map[string]*clusterv1.ManagedCluster{}
	for _, namespace := range hookNamespaces(f.facts) {
		host, err := r.clusterOf(ctx, f.facts, namespace)
		if err != nil {
			return f, err
		}
		f.hosts[namespace] = host
	}
	return f, nil
}

// askDeleting asks the agent about an add-on that is being deleted, with the content that it has. A configuration that
// cannot be decided is an answer that is unknown.
func (r *Reconciler) askDeleting(ctx context.Context, agent addon.Agent, f *facts) {
	var err error
	if f.configuration, err = r.Configurer.Configure(ctx, f.addOn); err != nil {
		f.answers = answers{registrationsErr: err, setupErr: err, renderErr: err}
		return
	}
	r.ask(ctx, agent, f, true)
}

// namespaceDeleting reports whether nothing can be created in a namespace any more.
func (r *Reconciler) namespaceDeleting(ctx context.Context, name string) (bool, error) {
	namespace, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, reconcile.Namespace())
	return err == nil && (namespace == nil || namespace.DeletionTimestamp != nil), err
}
