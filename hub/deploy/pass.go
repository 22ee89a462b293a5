package deploy

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconcile deploys the agent of one add-on on one cluster. The roles of an agent that may have none go
// before anything else is read, because the agent itself can make its works and its add-on such that nobody can.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	access, err := r.observeAccess(ctx, request.NamespacedName)
	if behind := r.confirmEnded(ctx, request.NamespacedName, access); behind != nil {
		return reconcile.FromError(errors.Join(err, behind)).Settle(access.now)
	}
	ended := errors.Join(r.runBindings(ctx, dropBindings(access.ended))...)
	f := access
	if err == nil {
		f, err = r.observe(ctx, request.NamespacedName, access)
	}
	if err != nil {
		return ctrl.Result{}, errors.Join(ended, err, r.passUnread(ctx, request.NamespacedName, access, err))
	}
	var former error
	switch {
	case f.deleting != nil && isThere(f.deleting):
		former = r.passKept(ctx, request.NamespacedName, access, errDeleting)
	case f.addOn == nil:
		former = r.leaveFormer(ctx, request.NamespacedName)
	}
	var guarded error
	if f.addOn != nil && f.cluster != nil && f.cluster.DeletionTimestamp == nil {
		if f.addOn, guarded = r.guardDependents(ctx, f.addOn); guarded != nil {
			return reconcile.FromError(errors.Join(ended, former, client.IgnoreNotFound(guarded))).Settle(access.now)
		}
	}
	result, err := r.deploy(ctx, request, f)
	return result, errors.Join(ended, former, err)
}

// errDeleting says why an add-on that is being deleted is not asked what it wants.
var errDeleting = errors.New("the add-on is being deleted")

// deploy takes the steps that follow from the facts.
func (r *Reconciler) deploy(ctx context.Context, request ctrl.Request, f facts) (ctrl.Result, error) {
	if !f.relevant {
		r.verified.Forget(request.NamespacedName)
		r.asksFor.Forget(request.NamespacedName)
		r.made.Forget(request.NamespacedName)
	}
	if f.deleting != nil {
		return r.reconcileDeletion(ctx, f.deleting)
	}
	if f.addOn == nil {
		return ctrl.Result{}, nil
	}
	if !f.relevant {
		after := f.addOn.DeepCopy()
		f.record(after, f.works, false)
		_, err := r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
		outcome := reconcile.FromError(client.IgnoreNotFound(err)).And(f.repeated())
		outcome = outcome.And(reconcile.FromError(r.leaveEverywhere(ctx, f)))
		return outcome.And(reconcile.FromError(r.leaveRoles(ctx, request.NamespacedName, f))).Settle(f.now)
	}
	f, p, err := r.confirmed(ctx, request.NamespacedName, f)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	r.verify(request.NamespacedName, p.verified)
	p.bindings = r.takeRoles(ctx, p.bindings)
	if f.addOn, err = r.recordAdmission(ctx, f, p); err != nil {
		return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
	}
	done := r.act(ctx, f, p)
	var former error
	if f.accepted() != nil || (f.refused == nil && errors.Join(done.bindings...) == nil) {
		former = r.dropFormer(ctx, request.NamespacedName, f.addOn.UID, f)
	}
	if done.addOn != nil {
		had := f.addOn.Status.ConfigReferences
		if f.addOn = done.addOn; !equality.Semantic.DeepEqual(had, f.addOn.Status.ConfigReferences) {
			// The author's program reported a hash meanwhile, which the decision does not know.
			err = reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", request.String())
			return outcomeOf(f, p, done, err).And(reconcile.FromError(former)).Settle(f.now)
		}
	}
	after := conclude(f, p, done)
	_, err = r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
	return outcomeOf(f, p, done, err).And(reconcile.FromError(former)).Settle(f.now)
}

// errClusterDeleting says why an add-on on a cluster that is being deleted is not asked what it wants.
var errClusterDeleting = errors.New("the cluster is being deleted")

// leaveRoles is the part of a pass without anything to deploy that concerns RoleBindings for all clusters. On a cluster
// that is being deleted, the hooks of the add-on are about to run and may need the roles.
func (r *Reconciler) leaveRoles(ctx context.Context, key types.NamespacedName, f facts) error {
	if len(f.former) > 0 && isAccepted(f.cluster) {
		if _, err := r.keepUnread(ctx, key, f, errClusterDeleting); err != nil {
			return err
		}
	}
	return r.dropFormer(ctx, key, f.addOn.UID, f)
}

// takeRoles deletes the RoleBindings that a plan deletes, before anything else is written: a status that the agent
// writes all the time must not keep them. It returns the steps that are left; one that failed is taken again, and
// reported, with them.
func (r *Reconciler) takeRoles(ctx context.Context, steps []bindingStep) []bindingStep {
	return slices.DeleteFunc(slices.Clone(steps), func(s bindingStep) bool {
		return s.Verb == reconcile.Delete && r.runBindings(ctx, []bindingStep{s})[0] == nil
	})
}

// reconcileDeletion handles an add-on that is being deleted. Without finalizers there is nothing to do: Kubernetes
// deletes the objects that the add-on owns.
func (r *Reconciler) reconcileDeletion(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (ctrl.Result, error) {
	now := r.Clock.Now()
	if len(addOn.Finalizers) == 0 {
		return ctrl.Result{}, nil
	}
	f, err := r.observeDeletion(ctx, addOn, nil)
	if err != nil {
		return reconcile.Retry(err).Settle(now)
	}
	p := decideDeletion(f)
	d, err := r.deletionStale(ctx, f, p)
	if d.clusters != nil {
		if f, err = r.observeDeletion(ctx, addOn, d.clusters); err != nil {
			return reconcile.Retry(err).Settle(now)
		}
		p = decideDeletion(f)
		d, err = r.deletionStale(ctx, f, p)
	}
	if d.exists() {
		err = reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", addOn.Name)
	}
	return r.actOnDeletion(ctx, f, p, err).Settle(now)
}
