package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/version"
)

// observeAccess reads the first facts about one add-on on one cluster, by which its agent may have roles or not. With
// an error, f.ended is what must go whatever is unknown: on a cluster that is not accepted, no add-on has roles.
func (r *Reconciler) observeAccess(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), account: r.account(), owners: r.AddOns.Owners, rules: r.Hosting}
	var err error
	if f.cluster, err = r.clusterOf(ctx, f, key.Namespace); err != nil {
		return f, err
	}
	f.clusterKnown = true
	addOn, err := r.AddOns.GetAddOn(ctx, key)
	unknown := client.IgnoreNotFound(err)
	switch {
	case err == nil:
		f.addOn = addOn
	case unknown != nil && isAccepted(f.cluster):
		return f, unknown
	}
	if f.needed, err = r.isNeeded(ctx, r.cached(), f.addOn, f.cluster); err != nil {
		return f, errors.Join(unknown, err)
	}
	f.ended, err = r.observeEnded(ctx, key, f)
	return f, errors.Join(unknown, err)
}

// observe reads the rest of the facts about one add-on on one cluster.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, f facts) (facts, error) {
	switch {
	case f.addOn == nil:
		return facts{}, nil
	case f.addOn.DeletionTimestamp != nil:
		return facts{deleting: f.addOn}, nil
	}
	var err error
	if f.configuration, err = r.Configurer.Configure(ctx, f.addOn); err != nil {
		return facts{}, err
	}
	agent, found, err := r.Agents.Agent(ctx, key.Name)
	if err != nil {
		return facts{}, err
	}
	f.byOthers = !found
	if found {
		if f.former, err = r.listFormer(ctx, key); err != nil {
			return facts{}, err
		}
	}
	if !found || f.cluster == nil || f.cluster.DeletionTimestamp != nil {
		f.works, err = r.listDeployed(ctx, f.addOn)
		return f, err // A cluster that is being deleted gets nothing new.
	}
	f.relevant, f.about = true, agent.About()
	if f.foreign, err = r.observeNamespace(ctx, key.Namespace); err != nil {
		return facts{}, err
	}
	if f.host, err = r.observeHost(ctx, f); err != nil {
		return facts{}, err
	}
	if f.foundHost, f.pendingHost, err = r.findHost(ctx, f); err != nil {
		return facts{}, err
	}
	if f.works, err = r.listWorks(ctx, f.addOn); err != nil {
		return facts{}, err
	}
	f.verified, _ = r.verified.Get(key)
	r.ask(ctx, agent, &f, false)
	if err = r.keepDefinitions(ctx, &f); err != nil {
		return facts{}, err
	}
	f.bindingFacts, err = r.observeBindings(ctx, agent, f)
	return f, err
}

// ask asks the agent. Nothing is known before a configuration is chosen. Objects are not rendered when the works are
// what was rendered from the same inputs, unless always is set.
func (r *Reconciler) ask(ctx context.Context, agent addon.Agent, f *facts, always bool) {
	if err := f.configuration.Err; err != nil {
		f.answers = answers{registrationsErr: err, setupErr: err, renderErr: err}
		return
	}
	request := addon.Request{Cluster: f.cluster, Hosting: f.host, AddOn: f.addOn, Choice: f.configuration.Choice}
	resolved, err := agent.Resolve(ctx, request)
	if err != nil {
		f.answers = answers{registrationsErr: err, setupErr: err, renderErr: err}
		return
	}
	f.answers = answers{
		registrations: resolved.Registrations, setup: resolved.Setup, withheld: resolved.Withheld, remarks: resolved.Remarks,
	}
	if key, err := r.keyOf(ctx, agent, request, resolved.Key); err == nil && key != "" {
		f.key, f.by = key, strings.TrimSpace(cmp.Or(r.Version, version.String())+" "+resolved.Version)
	}
	f.rendering.Configs = request.Choice.Configs
	f.setup.Health, f.pendingHealth = steadyHealth(*f)
	if !always {
		f.current = currentWorks(*f)
	}
	if f.current == nil {
		f.rendering, f.renderErr = r.render(ctx, agent, request)
		f.setup.Health = resolved.Setup.Health
		f.setup.Health, f.pendingHealth = steadyHealth(*f)
	}
	f.pendingHealth = cmp.Or(f.pendingHealth, resolved.NextHealth)
}

// keyOf returns what the objects of both sides are rendered from; empty when they must be rendered.
func (r *Reconciler) keyOf(
	ctx context.Context, agent addon.Agent, request addon.Request, managed string,
) (string, error) {
	forHost, differs := r.Hosting.ForHost(request)
	if managed == "" || !differs {
		return managed, nil
	}
	resolved, err := agent.Resolve(ctx, forHost)
	if err != nil || resolved.Key == "" {
		return "", err
	}
	return managed + "/" + resolved.Key, nil
}

// render renders the objects of the agent, for each side with what may influence it.
func (r *Reconciler) render(
	ctx context.Context, agent addon.Agent, request addon.Request,
) (addon.Rendering, error) {
	rendering, err := agent.Render(ctx, request)
	forHost, differs := r.Hosting.ForHost(request)
	if err != nil || !differs {
		return rendering, err
	}
	hosted, err := agent.Render(ctx, forHost)
	if err != nil {
		return rendering, fmt.Errorf("rendering for hosting cluster %s: %w", request.Hosting.Name, err)
	}
	rendering.Objects = hosting.Merge(rendering.Objects, hosted.Objects, works.IsHosted)
	return rendering, nil
}

// listDeployed lists the works that deploy an add-on, no matter who wrote them: those in the namespace of its cluster
// and, for a hosted add-on, those in the namespace of the hosting cluster, without its pre-delete hooks.
func (r *Reconciler) listDeployed(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) ([]*workv1.ManifestWork, error) {
	all, err := r.listWorks(ctx, addOn)
	if err != nil {
		return nil, err
	}
	host, hook := addOn.Annotations[names.AnnotationHostingCluster], "addon-"+addOn.Name+"-"+string(works.PreDelete)
	return slices.DeleteFunc(all, func(work *workv1.ManifestWork) bool {
		of, hosted := work.Labels[names.LabelAddonNamespace]
		return (hosted && of != addOn.Namespace) || strings.HasPrefix(work.Name, hook) ||
			(work.Namespace != addOn.Namespace && work.Namespace != host)
	}), nil
}

// listWorks lists the works of an add-on: those in the namespace of its cluster and, by their label, those on hosting
// clusters that count.
func (r *Reconciler) listWorks(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) ([]*workv1.ManifestWork, error) {
	key := client.ObjectKeyFromObject(addOn)
	var list, hosted workv1.ManifestWorkList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{names.LabelAddonName: key.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of add-on %s: %w", key, err)
	}
	err = r.Client.List(ctx, &hosted, client.UnsafeDisableDeepCopy, client.MatchingFields{indexHosted: key.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of add-on %s on hosting clusters: %w", key, err)
	}
	all := reconcile.Pointers(list.Items)
	for i := range hosted.Items {
		if hosted.Items[i].Namespace != key.Namespace && hosting.Counts(addOn, &hosted.Items[i]) {
			all = append(all, &hosted.Items[i])
		}
	}
	return all, nil
}

// observeHost reads the hosting cluster of the add-on; nil when it names none, or one that does not exist.
func (r *Reconciler) observeHost(ctx context.Context, f facts) (*clusterv1.ManagedCluster, error) {
	name := hostName(f)
	if name == "" {
		return nil, nil // no host is a good answer
	}
	if live, is := f.live[name]; is {
		return live, nil
	}
	return reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}

// findHost returns the hosting cluster that is found for an add-on that asks for one, or why there is none. What was
// found is pending, too, until the add-on names it.
func (r *Reconciler) findHost(ctx context.Context, f facts) (host, pending string, err error) {
	if !hosting.Asks(f.addOn) {
		return "", "", nil
	}
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, f.addOn.Name)
	if err != nil {
		r.modes.Forget(f.addOn.Name)
		return "", "", client.IgnoreNotFound(err)
	}
	mode, err := r.modes.of(ctx, r.Live, cma)
	if err != nil {
		return "", fmt.Sprintf("It is not known whether the hub may find the hosting cluster: %v", err), nil
	}
	if !hosting.Allows(cma, mode) {
		return "", "", nil
	}
	s := hosting.Search{Cluster: f.cluster}
	if claimed := hosting.Claimed(f.cluster); claimed != "" {
		if s.Host, err = r.clusterOf(ctx, f, claimed); err != nil {
			return "", "", err
		}
	}
	if s.Host != nil {
		s.Sets, s.Unread = r.clusterSets(ctx)
	}
	if host, pending = r.Hosting.Find(s); host != "" {
		pending = "Hosting cluster " + host + " was found."
	}
	return host, pending, nil
}

// clusterSets lists the cluster sets.
func (r *Reconciler) clusterSets(ctx context.Context) ([]*clusterv1beta2.ManagedClusterSet, error) {
	if r.Sets == nil {
		return nil, errors.New("this program does not read them")
	}
	var sets clusterv1beta2.ManagedClusterSetList
	err := r.Sets.List(ctx, &sets)
	return reconcile.Pointers(sets.Items), err
}

// observeDeletion reads the facts about an add-on with finalizers. live are clusters that the API server has.
func (r *Reconciler) observeDeletion(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, live map[string]*clusterv1.ManagedCluster,
) (deletionFacts, error) {
	f := deletionFacts{facts: facts{
		now: r.Clock.Now(), owners: r.AddOns.Owners, addOn: addOn, rules: r.Hosting, live: live,
	}, managed: true}
	agent, found, err := r.Agents.Agent(ctx, addOn.Name)
	if err != nil {
		return f, err
	}
	f.ours = found
	if f.cluster, err = r.clusterOf(ctx, f.facts, addOn.Namespace); err != nil {
		return f, err
	}
	if slices.Contains(addOn.Finalizers, names.FinalizerDependents) {
		if f.dependents, err = r.observeDependents(ctx, r.cached(), addOn, f.cluster); err != nil {
			return f, err
		}
	}
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
