package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.rollout"

// minAge is how old a stored content must be before it is deleted: the status that refers to a new one may not be in
// the cache yet.
const minAge = 10 * time.Second

// Reconciler plans the rollout of each ClusterManagementAddOn and reports its progress.
type Reconciler struct {
	// AddOns reads add-ons and writes the status of ClusterManagementAddOns.
	AddOns addonapi.Client
	// Client reads clusters and decisions from the cache.
	Client client.Client
	// Placements knows what Placements have decided.
	Placements *fleet.Placements
	// Store reads configurations, and deletes contents that nothing refers to.
	Store *addonconfig.Store
	// Gates has the policies and windows of add-ons; nil has none.
	Gates *gate.Reader
	// Waves tells how far rollouts are; nil tells nothing.
	Waves *Waves
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Wake receives the add-ons whose admission changed; nil wakes none. A send blocks until it is received.
	Wake chan<- event.GenericEvent
	// Changed sends the configurations of other kinds that changed; nil sends none.
	Changed <-chan event.TypedGenericEvent[objectwatch.Ref]

	members fleet.Members[*member]

	// decided is the last plan of each ClusterManagementAddOn.
	decided kept.Map[string, decided]
}

// Reconcile plans one ClusterManagementAddOn.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	f, err := r.observe(ctx, req.Name, now)
	if err == nil && len(f.members) == 0 {
		r.Store.Abandon(req.Name)
	}
	// The pass of the add-on that is to store a lost content again may fail for another reason, again and again.
	restored := reconcile.FromError(errors.Join(r.Store.Restore(ctx, req.Name, nil)))
	if err != nil {
		return reconcile.FromError(err).And(restored).Settle(now)
	}
	if f.cma == nil {
		r.decided.Forget(req.Name)
		r.Waves.forget(req.Name)
		reported := reconcile.FromError(r.reportGone(ctx, req.Name, f))
		if f.gate, err = r.Gates.Rules(ctx, req.Name); err != nil { // It says which contents are not obsolete.
			return reconcile.FromError(err).And(reported).And(restored).Settle(now)
		}
		return r.collect(ctx, req.Name, f, nil).And(reported).And(restored).Settle(now)
	}
	return r.act(ctx, f, decide(f)).And(restored).Settle(now)
}

// act writes the progress of a plan, and admits by it.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) reconcile.Outcome {
	name, after := f.cma.Name, conclude(f, p)
	changed, err := r.AddOns.PatchClusterManagementAddOnStatus(ctx, f.cma, after)
	if apierrors.IsConflict(err) {
		// Configurations and ClusterManagementAddOns are watched apart: a new template may be seen before the strategy that
		// was written ahead of it. Nothing is admitted by a strategy of before.
		return reconcile.FromError(err)
	}
	woken := r.remember(name, p)
	r.Waves.set(name, p.placements)
	if changed {
		log.FromContext(ctx).V(1).Info("recorded the progress of placements")
	}
	r.wake(ctx, name, woken)
	outcome := reconcile.FromError(client.IgnoreNotFound(err)).And(reconcile.DoneUntil(p.wake))
	outcome = outcome.And(reconcile.FromError(r.reportGate(ctx, f, p)))
	return outcome.And(r.collect(ctx, name, f, after))
}

// Admission returns the decision of the present plan about an add-on and a target. It is not decided when the plan does
// not know this ManagedClusterAddOn or the target yet.
func (r *Reconciler) Admission(addOn metav1.Object, target []addonv1beta1.ConfigReference) addonconfig.Admission {
	plan, _ := r.decided.Get(addOn.GetName())
	decision := plan.admissions[addOn.GetNamespace()]
	if !decision.isAbout(addOn.GetUID(), addonconfig.Fingerprint(target)) {
		return addonconfig.Admission{}
	}
	return addonconfig.Admission{Granted: decision.granted, Reason: decision.reason, Way: decision.way,
		Undo: decision.undo, NotUndone: decision.notUndone}
}

// remember stores the decisions of a plan, and returns the clusters whose admission changed.
func (r *Reconciler) remember(addOn string, p plan) []string {
	before, _ := r.decided.Get(addOn)
	r.decided.Put(addOn, p.decided)
	var changed []string
	for cluster, decision := range p.admissions {
		if before.admissions[cluster] != decision {
			changed = append(changed, cluster)
		}
	}
	return changed
}

// wake starts a pass for the add-on on the given clusters.
func (r *Reconciler) wake(ctx context.Context, addOn string, clusters []string) {
	for _, cluster := range clusters {
		if r.Wake == nil {
			return
		}
		select {
		case r.Wake <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addOn},
		}}:
		case <-ctx.Done():
			return
		}
	}
}

// collect deletes stored contents that nothing refers to. after is nil when the ClusterManagementAddOn does not exist.
func (r *Reconciler) collect(
	ctx context.Context, addOn string, f facts, after *addonv1beta1.ClusterManagementAddOn,
) reconcile.Outcome {
	revisions, err := r.Store.Revisions(ctx, addOn)
	if err != nil {
		return reconcile.Retry(err)
	}
	outcome := reconcile.Done()
	referred := slices.Concat(referredBy(after), f.completed())
	unnamed := addonconfig.Obsolete(addOn, revisions, slices.Values(referred))
	obsolete := addonconfig.Obsolete(addOn, unnamed, referredByMembers(f.members))
	if len(obsolete) == 0 {
		return outcome
	}
	// A member that cannot be decoded may refer to any of them.
	if _, err := r.AddOns.ListWatched(ctx, client.MatchingFields{addonapi.IndexName: addOn}); err != nil {
		return reconcile.Retry(err)
	}
	for _, revision := range obsolete {
		if old := revision.CreationTimestamp.Add(minAge); f.now.Before(old) {
			outcome = outcome.And(reconcile.DoneUntil(old))
			continue
		}
		outcome = outcome.And(reconcile.FromError(r.Store.Forget(ctx, revision)))
	}
	return outcome
}

// reportGone writes the status of the policy of an add-on that has no ClusterManagementAddOn.
func (r *Reconciler) reportGone(ctx context.Context, name string, f facts) error {
	var err error
	if f.gate, err = r.Gates.Gate(ctx, name); err != nil {
		return err
	}
	return r.reportGate(ctx, f, plan{})
}

// reportGate writes the status of the policy of an add-on.
func (r *Reconciler) reportGate(ctx context.Context, f facts, p plan) error {
	policy := f.gate.Policy()
	if policy == nil {
		return nil
	}
	_, err := reconcile.PatchStatus(ctx, r.Client, policy, f.concludePolicy(policy, p))
	return client.IgnoreNotFound(err)
}
