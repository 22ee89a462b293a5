package cluster

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// act runs the plan up to the marks. The cluster itself is written first, but its finalizers go last. It returns the
// cluster as it is now.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) (*clusterv1.ManagedCluster, error) {
	if p.phase == phaseDeleting {
		if err := r.runStages(ctx, p.stages); err != nil {
			return f.cluster, err
		}
		return r.writeCluster(ctx, f, p)
	}
	latest, err := r.writeCluster(ctx, f, p)
	if err != nil {
		return latest, err
	}
	return latest, r.runStages(ctx, p.stages)
}

// writeCluster writes what the plan changes of the cluster outside its status.
func (r *Reconciler) writeCluster(ctx context.Context, f facts, p plan) (*clusterv1.ManagedCluster, error) {
	if p.cluster == nil {
		return f.cluster, nil
	}
	if _, err := reconcile.PatchMain(ctx, r.Client, f.cluster, p.cluster); err != nil {
		return f.cluster, err
	}
	if p.voucher != nil {
		log.FromContext(ctx).Info("accepted a cluster", "request", p.voucher.Name, "requester", p.voucher.Spec.Username)
	}
	return p.cluster, nil
}

// runStages runs the stages. One is only begun when all before it succeeded; in a stage, one step that fails does not
// keep the others from running.
func (r *Reconciler) runStages(ctx context.Context, stages [][]step) error {
	for _, stage := range stages {
		var failed []error
		for _, s := range stage {
			if err := r.run(ctx, s); err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) > 0 {
			return errors.Join(failed...)
		}
	}
	return nil
}

// run does one step. To delete or let go what is gone already is no error.
func (r *Reconciler) run(ctx context.Context, s step) error {
	what := fmt.Sprintf("%T %s", s.object, client.ObjectKeyFromObject(s.object))
	log.FromContext(ctx).V(1).Info("changing an object of the cluster", "verb", s.verb, "object", what)
	switch s.verb {
	case create:
		err := r.Client.Create(ctx, s.object)
		if apierrors.IsAlreadyExists(err) {
			return r.adopt(ctx, s.object, err)
		}
		if err != nil {
			return fmt.Errorf("creating %s: %w", what, err)
		}
	case patch:
		_, err := reconcile.PatchMain(ctx, r.Client, s.have, s.object)
		if apierrors.IsNotFound(err) && !s.have.GetDeletionTimestamp().IsZero() {
			return nil // It was going, and went.
		}
		return err
	case remove:
		if err := r.remove(ctx, s.object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", what, err)
		}
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, o client.Object) error {
	if addon, ok := o.(*addonv1beta1.ManagedClusterAddOn); ok {
		return r.AddOns.DeleteAddOn(ctx, addon)
	}
	uid := o.GetUID()
	return r.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
}

// adopt takes over an object that has the name of one of ours but not our label, which is why the cache does not show
// it. One that has the label was created a moment ago; then the race was lost.
func (r *Reconciler) adopt(ctx context.Context, want client.Object, exists error) error {
	have, ok := want.DeepCopyObject().(client.Object)
	if !ok {
		return exists
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return fmt.Errorf("reading %T %s, which is there already: %w", want, client.ObjectKeyFromObject(want), err)
	}
	if have.GetLabels()[names.LabelClusterName] == want.GetLabels()[names.LabelClusterName] && hasLabel(have) {
		return exists
	}
	var steps []step
	switch want := want.(type) {
	case *rbacv1.ClusterRole:
		steps = ensureRole(as[*rbacv1.ClusterRole](have), want)
	case *rbacv1.ClusterRoleBinding:
		steps = ensureClusterBinding(as[*rbacv1.ClusterRoleBinding](have), want)
	default:
		return exists
	}
	for _, s := range steps {
		if err := r.run(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func as[T client.Object](o client.Object) T {
	typed, _ := o.(T)
	return typed
}

func hasLabel(o metav1.Object) bool {
	_, ok := o.GetLabels()[names.LabelClusterName]
	return ok
}

// markAddons shows the add-ons of a silent cluster as Unknown.
func (r *Reconciler) markAddons(ctx context.Context, marks []mark) error {
	var failed []error
	for _, m := range marks {
		if _, err := r.AddOns.PatchAddOnStatus(ctx, m.before, m.after); client.IgnoreNotFound(err) != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
