package cluster

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// act writes the cluster and runs the stages. A cluster that is being deleted is written last, because its finalizers
// go with that write. One that is not accepted loses its rights first, whatever becomes of the write of the cluster:
// its agent, which may update the cluster, could have that write fail for ever. act returns the cluster as it is
// afterwards.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) (*clusterv1.ManagedCluster, error) {
	switch p.phase {
	case phaseGone, phaseRefused, phaseAccepted:
	case phaseDeleting:
		if err := r.runStages(ctx, p.stages); err != nil {
			return f.cluster, err
		}
		return r.writeCluster(ctx, f, p)
	case phaseDenied, phaseNew:
		failed := r.runStages(ctx, p.stages)
		latest, err := r.writeCluster(ctx, f, p)
		return latest, errors.Join(failed, err)
	}
	latest, err := r.writeCluster(ctx, f, p)
	if err != nil {
		return latest, err
	}
	return latest, r.runStages(ctx, p.stages)
}

// writeCluster writes the planned changes of the cluster, its status aside.
func (r *Reconciler) writeCluster(ctx context.Context, f facts, p plan) (*clusterv1.ManagedCluster, error) {
	if p.cluster == nil {
		return f.cluster, nil
	}
	if _, err := reconcile.PatchMain(ctx, r.Client, f.cluster, p.cluster); err != nil {
		return f.cluster, err
	}
	if p.approvedRequest != nil {
		log.FromContext(ctx).Info("accepted a cluster", "request", p.approvedRequest.Name,
			"requester", p.approvedRequest.Spec.Username)
	}
	return p.cluster, nil
}

// runStages runs the stages in order. A stage begins only when all stages before it succeeded; within a stage, a step
// that fails does not stop the others.
func (r *Reconciler) runStages(ctx context.Context, stages [][]step) error {
	for _, stage := range stages {
		var failed []error
		for _, s := range stage {
			if _, err := r.writer().Run(quiet(ctx), s); err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) > 0 {
			return errors.Join(failed...)
		}
	}
	return nil
}

// writer writes the objects of a cluster. Add-ons are deleted in the version that the hub serves.
func (r *Reconciler) writer() reconcile.Writer[client.Object] {
	w := reconcile.Writer[client.Object]{Client: r.Client, Live: r.Live, Adopt: adopt}
	w.Remove = func(ctx context.Context, o client.Object) error {
		if addon, ok := o.(*addonv1beta1.ManagedClusterAddOn); ok {
			return r.AddOns.DeleteAddOn(ctx, addon)
		}
		uid, version := o.GetUID(), o.GetResourceVersion()
		only := client.Preconditions{UID: &uid}
		if _, ok := o.(*clusterv1.ManagedCluster); ok { // a user may accept it at this instant
			only.ResourceVersion = &version
		}
		return r.Client.Delete(ctx, o, only)
	}
	return w
}

// quiet lets the single writes of a pass be logged at verbosity 1: the conditions say the rest.
func quiet(ctx context.Context) context.Context {
	return log.IntoContext(ctx, log.FromContext(ctx).V(1))
}

// adopt takes over an object that has the name of one of ours but not our label, so that the cache does not show it. An
// object with the label was created a moment ago: the race is lost.
func adopt(want, found client.Object) ([]step, error) {
	label, labelled := found.GetLabels()[names.LabelClusterName]
	if labelled && label == want.GetLabels()[names.LabelClusterName] {
		return nil, nil
	}
	switch want := want.(type) {
	case *rbacv1.ClusterRole:
		return ensureRole(as[*rbacv1.ClusterRole](found), want), nil
	case *rbacv1.ClusterRoleBinding:
		return ensureClusterBinding(as[*rbacv1.ClusterRoleBinding](found), want), nil
	}
	return nil, nil
}

func as[T client.Object](o client.Object) T {
	typed, _ := o.(T)
	return typed
}

// writeAddOnStatuses sets Available of the add-ons of a silent cluster to Unknown.
func (r *Reconciler) writeAddOnStatuses(ctx context.Context, unknownAddOns []addOnStatus) error {
	var failed []error
	for _, m := range unknownAddOns {
		if _, err := r.AddOns.PatchAddOnStatus(ctx, m.before, m.after); client.IgnoreNotFound(err) != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
