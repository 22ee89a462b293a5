package configure

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Watch adds to a controller of add-ons the watches of all that decides their configuration.
func (c *Configurer) Watch(b *builder.Builder) *builder.Builder {
	c.awaiting = &awaiting{}
	b = b.Watches(c.AddOns.WatchedClusterManagementAddOn(), c.addOnsOfCMA(),
		builder.WithPredicates(instructionsChanged())).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(c.addOnsOfPlacement),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&clusterv1beta1.Placement{}, c.wakesAwaiting(client.ObjectKeyFromObject)).
		Watches(&clusterv1beta1.PlacementDecision{}, c.addOnsOfDecision()).
		Watches(&clusterv1beta1.PlacementDecision{}, c.wakesAwaiting(placementOfDecision)).
		Watches(c.AddOns.WatchedAddOn(), c.notesAddOns()).
		Watches(&appsv1.ControllerRevision{}, handler.Funcs{DeleteFunc: c.storesAgain})
	if c.Gates != nil {
		edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
		b = b.Watches(&policies.AddOnPolicy{}, c.addOnsOfPolicy(), builder.WithPredicates(gate.RulesChanged())).
			Watches(&policies.MaintenanceWindow{}, handler.EnqueueRequestsFromMapFunc(c.waitingAddOns), edited)
		b = c.watchDependencies(b)
	}
	return c.watchConfigs(b)
}

// waitingAddOns enqueues the add-ons that wait, for a policy those of its name: one that a gate holds may begin, or
// waits for another reason. Nothing is to be done for the others when a gate closes.
func (c *Configurer) waitingAddOns(ctx context.Context, o client.Object) []ctrl.Request {
	var of []client.ListOption
	if _, is := o.(*policies.AddOnPolicy); is {
		of = append(of, client.MatchingFields{addonapi.IndexName: o.GetName()})
	}
	var requests []ctrl.Request
	err := c.AddOns.EachAddOn(ctx, func(addOn client.Object) {
		if causes.Waits(addonapi.Conditions(addOn)) != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addOn)})
		}
	}, of...)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-ons that wait")
	}
	return requests
}

// addOnsOfPolicy enqueues the add-ons that wait for a policy, and all of its name where contents are undone, or not any
// more.
func (c *Configurer) addOnsOfPolicy() handler.EventHandler {
	add := func(ctx context.Context, q queue, o client.Object, all bool) {
		requests := c.waitingAddOns
		if all {
			requests = func(ctx context.Context, o client.Object) []ctrl.Request {
				return c.addOnsBy(ctx, addonapi.IndexName, o.GetName())
			}
		}
		for _, request := range requests(ctx, o) {
			q.Add(request)
		}
	}
	undoes := func(o client.Object) bool {
		p, is := o.(*policies.AddOnPolicy)
		return is && len(p.Spec.Undo)+len(p.Status.Undone) > 0
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object, undoes(e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, q, e.ObjectNew, gate.UndoChanged(e))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, undoes(e.Object)) },
	}
}

// watchConfigs adds the watches of configurations.
func (c *Configurer) watchConfigs(b *builder.Builder) *builder.Builder {
	edited := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	for _, kind := range c.Store.Watched() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(c.addOnsOfConfig), builder.WithPredicates(edited))
	}
	if c.Changed != nil {
		b = b.WatchesRawSource(source.TypedChannel(c.Changed,
			handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, ref objectwatch.Ref) []ctrl.Request {
				return c.addOnsNaming(ctx, addonconfig.KeyOf(ref))
			})))
	}
	return b
}

// instructionsChanged passes changes of a ClusterManagementAddOn that may affect its add-ons.
func instructionsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return instructionsDiffer(e.ObjectOld, e.ObjectNew) || reportedHashesDiffer(e.ObjectOld, e.ObjectNew)
	}}
}

// instructionsDiffer reports whether the spec differs, or an annotation that says what is to be done. One may carry
// fields of the spec through the version of the cache.
func instructionsDiffer(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || slices.ContainsFunc(
		[]string{names.AnnotationLifecycle, names.AnnotationAutoDiscovery, names.AnnotationCarried},
		func(key string) bool { return was.GetAnnotations()[key] != is.GetAnnotations()[key] })
}

// reportedHashesDiffer reports whether the manager of an add-on reported the hash of a kind that the hub does not read.
func reportedHashesDiffer(was, is client.Object) bool {
	before, err := addonapi.ClusterManagementAddOn(was)
	if err != nil {
		return true
	}
	after, err := addonapi.ClusterManagementAddOn(is)
	if err != nil {
		return true
	}
	return !slices.EqualFunc(reportedHashes(before), reportedHashes(after), func(a, b addonconfig.Reference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && equality.Semantic.DeepEqual(a.Desired, b.Desired)
	})
}

func reportedHashes(cma *addonv1beta1.ClusterManagementAddOn) []addonconfig.Reference {
	references := addonconfig.DefaultReferences(cma.Status.DefaultConfigReferences)
	for _, progression := range cma.Status.InstallProgressions {
		references = append(references, addonconfig.PlacementReferences(progression.ConfigReferences)...)
	}
	return slices.DeleteFunc(references, func(r addonconfig.Reference) bool {
		_, ours := confighash.Kind(r.ConfigGroupResource)
		return ours
	})
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// leavingDelay is how long an add-on that no placement selects any more waits for the pass that would explain on it
// why it is still there. Nearly all are uninstalled by then, and nothing else is done for them in that pass.
const leavingDelay = 10 * time.Second

// addOnsOfCMA enqueues the add-ons of a ClusterManagementAddOn.
func (c *Configurer) addOnsOfCMA() handler.EventHandler {
	add := func(ctx context.Context, o client.Object, q queue) {
		stays := c.stays(ctx, o)
		err := c.AddOns.EachAddOn(ctx, func(addOn client.Object) {
			enqueue(q, addOn, stays != nil && !stays.Has(addOn.GetNamespace()))
		}, client.MatchingFields{addonapi.IndexName: o.GetName()}, decode.Metadata)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding the add-ons of a ClusterManagementAddOn")
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}

// enqueue enqueues an add-on, or later if placements installed it and its cluster is unselected.
func enqueue(q queue, addOn client.Object, unselected bool) {
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addOn)}
	if unselected && addOn.GetLabels()[names.LabelInstalledBy] == names.InstalledByPlacement {
		q.AddAfter(request, leavingDelay)
		return
	}
	q.Add(request)
}

// stays returns the clusters that placements of a ClusterManagementAddOn select; nil when none of its add-ons is
// uninstalled because of them.
func (c *Configurer) stays(ctx context.Context, cma client.Object) sets.Set[string] {
	strategy := addonapi.StrategyOf(cma)
	if !strategy.ByPlacements || !addonapi.Managed(cma) || !cma.GetDeletionTimestamp().IsZero() {
		return nil
	}
	clusters := sets.New[string]()
	for _, placement := range strategy.Placements {
		d, err := c.Placements.Decisions(ctx, placement)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding the clusters of a placement", "placement", placement)
			return nil
		}
		clusters.Insert(d.Names...)
	}
	return clusters
}

func (c *Configurer) addOnsOfPlacement(ctx context.Context, o client.Object) []ctrl.Request {
	var requests []ctrl.Request
	placement := addonapi.PlacementKey(o.GetNamespace(), o.GetName())
	for _, cma := range c.AddOns.ManagementsBy(ctx, addonapi.IndexPlacement, placement) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, cma.Name)...)
	}
	return requests
}

// addOnsOfConfig maps a config to the add-ons that name it, and to all add-ons of a ClusterManagementAddOn that names
// it.
func (c *Configurer) addOnsOfConfig(ctx context.Context, o client.Object) []ctrl.Request {
	return c.addOnsNaming(ctx, addonconfig.ConfigKeyOf(o))
}

func (c *Configurer) addOnsNaming(ctx context.Context, key string) []ctrl.Request {
	c.Store.Drop(key)
	requests := c.addOnsBy(ctx, addonconfig.IndexConfig, key)
	for _, cma := range c.AddOns.ManagementsBy(ctx, addonconfig.IndexConfig, key) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, cma.Name)...)
	}
	return requests
}

// storesAgain enqueues an add-on that runs with a stored content that was deleted: its pass stores it again. All others
// that run with it need no pass, and none does when the hub manager deleted it because nothing uses it. Where all are
// being deleted, each gets a pass: there is none for one whose cluster is gone.
func (c *Configurer) storesAgain(ctx context.Context, e event.DeleteEvent, q queue) {
	c.Store.Deleted(e.Object)
	content, err := addonconfig.KeptBy(e.Object)
	if err != nil {
		log.FromContext(ctx).Info("a stored content was deleted that does not say of what it was", "cause", err.Error())
		return
	}
	uses := func(addOn *addonv1beta1.ManagedClusterAddOn) bool {
		return slices.Contains(addonconfig.ChosenBy(addOn.Status.ConfigReferences), content)
	}
	name := addonconfig.AddOnOf(e.Object)
	using := c.oneThatStays(ctx, name, uses)
	if revision, is := e.Object.(*appsv1.ControllerRevision); is && len(using) > 0 {
		c.Store.Lost(revision)
		// Who leaves from here on is followed by another one (takesOver).
		using = c.oneThatStays(ctx, name, uses)
	}
	for _, request := range using {
		q.Add(request)
	}
}

// takesOver enqueues another add-on of the name of one that is gone, which may have had the pass that stores a lost
// content again.
func (c *Configurer) takesOver(ctx context.Context, gone client.Object, q queue) {
	if !c.Store.HasLost(gone.GetName()) {
		return
	}
	if others := c.oneThatStays(ctx, gone.GetName(), nil); len(others) > 0 {
		q.Add(others[0])
	}
}

// oneThatStays returns a request for one of the add-ons of a name that is not being deleted; where all are, for each of
// them. A nil function stands for any add-on.
func (c *Configurer) oneThatStays(
	ctx context.Context, name string, which func(*addonv1beta1.ManagedClusterAddOn) bool,
) []ctrl.Request {
	stays := map[types.NamespacedName]bool{}
	all := c.AddOns.Requests(ctx, func(addOn *addonv1beta1.ManagedClusterAddOn) bool {
		stays[client.ObjectKeyFromObject(addOn)] = addOn.DeletionTimestamp.IsZero()
		return which == nil || which(addOn)
	}, client.MatchingFields{addonapi.IndexName: name})
	if i := slices.IndexFunc(all, func(r ctrl.Request) bool { return stays[r.NamespacedName] }); i >= 0 {
		return all[i : i+1]
	}
	return all
}

// addOnsOfDecision enqueues the add-ons of the clusters that a PlacementDecision adds or drops. Of those that it drops,
// it does so at once only if another placement selects them.
func (c *Configurer) addOnsOfDecision() handler.EventHandler {
	add := func(ctx context.Context, q queue, was, is client.Object) {
		for _, decision := range []client.Object{was, is} {
			if decision == nil {
				continue
			}
			placement := placementKey(asDecision(decision))
			for _, cma := range c.AddOns.ManagementsBy(ctx, addonapi.IndexPlacement, placement) {
				for _, cluster := range changedClusters(asDecision(was), asDecision(is)) {
					c.decided(ctx, q, types.NamespacedName{Namespace: cluster, Name: cma.Name})
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

// decided enqueues an add-on whose cluster was selected or dropped. One that does not exist yet comes with an event of
// its own.
func (c *Configurer) decided(ctx context.Context, q queue, key types.NamespacedName) {
	addOn, err := c.AddOns.PeekAddOn(ctx, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the add-on of a cluster", "cluster", key.Namespace)
	}
	if addOn != nil {
		enqueue(q, addOn, !c.isSelected(ctx, key.Namespace))
	}
}

// isSelected reports whether any placement selects a cluster.
func (c *Configurer) isSelected(ctx context.Context, cluster string) bool {
	var decisions clusterv1beta1.PlacementDecisionList
	err := c.Client.List(ctx, &decisions, client.MatchingFields{addonapi.IndexCluster: cluster},
		client.UnsafeDisableDeepCopy)
	return err != nil || len(decisions.Items) > 0
}

func asDecision(o client.Object) *clusterv1beta1.PlacementDecision {
	if decision, ok := o.(*clusterv1beta1.PlacementDecision); ok {
		return decision
	}
	return &clusterv1beta1.PlacementDecision{}
}

// changedClusters returns the clusters that are in only one of two decisions; all of both if they belong to different
// placements.
func changedClusters(was, is *clusterv1beta1.PlacementDecision) []string {
	moved := addonapi.PlacementOf(was) != addonapi.PlacementOf(is)
	before, after := sets.New(addonapi.SelectedClusters(was)...), sets.New(addonapi.SelectedClusters(is)...)
	var changed []string
	for cluster := range before {
		if moved || !after.Has(cluster) {
			changed = append(changed, cluster)
		}
	}
	for cluster := range after {
		if !before.Has(cluster) {
			changed = append(changed, cluster)
		}
	}
	return changed
}

func (c *Configurer) addOnsBy(ctx context.Context, index, value string) []ctrl.Request {
	return c.AddOns.Requests(ctx, nil, client.MatchingFields{index: value})
}

// placementKey returns the index key of the placement of a PlacementDecision.
func placementKey(decision *clusterv1beta1.PlacementDecision) string {
	ref := addonapi.PlacementOf(decision)
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}

// watchDependencies adds the watches of what comes before add-ons.
func (c *Configurer) watchDependencies(b *builder.Builder) *builder.Builder {
	return b.Watches(c.AddOns.WatchedAddOn(), handler.EnqueueRequestsFromMapFunc(c.ofDependency),
		builder.WithPredicates(gate.DependencyChanged())).
		Watches(c.AddOns.WatchedClusterManagementAddOn(), handler.EnqueueRequestsFromMapFunc(c.ofNewName),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&policies.AddOnPolicy{}, handler.EnqueueRequestsFromMapFunc(c.ofOrder),
			builder.WithPredicates(gate.OrderChanged()))
}

// ofDependency maps an add-on to those on its cluster that depend on it.
func (c *Configurer) ofDependency(ctx context.Context, o client.Object) []ctrl.Request {
	return c.Gates.OnCluster(ctx, o.GetNamespace(), c.Gates.Dependents(ctx, o.GetName()))
}

// ofNewName maps a ClusterManagementAddOn that comes or goes to the add-ons that depend on it.
func (c *Configurer) ofNewName(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, name := range c.Gates.Dependents(ctx, o.GetName()) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}

// ofOrder maps a policy with other dependencies to its add-ons, and to those that depend on them.
func (c *Configurer) ofOrder(ctx context.Context, o client.Object) (requests []ctrl.Request) {
	for _, name := range c.Gates.Known(ctx).Above(o.GetName()) {
		requests = append(requests, c.addOnsBy(ctx, addonapi.IndexName, name)...)
	}
	return requests
}
