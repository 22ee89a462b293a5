package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// leave brings an add-on that is being deleted closer to its end. Without finalizers there is nothing to do: what the
// add-on owns goes with it.
func (r *Reconciler) leave(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (ctrl.Result, error) {
	now := r.Clock.Now()
	if len(addOn.Finalizers) == 0 {
		return ctrl.Result{}, nil
	}
	f, err := r.observeLeave(ctx, addOn)
	if err != nil {
		return reconcile.Retry(err).Settle(now)
	}
	p := decideLeave(f)
	return r.finish(ctx, f, p).Settle(now)
}

// observeLeave reads what the decision about the finalizers of an add-on needs.
func (r *Reconciler) observeLeave(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (leaveFacts, error) {
	f := leaveFacts{now: r.Clock.Now(), addOn: addOn, managed: true}
	agent, found, err := r.Agents.Agent(ctx, addOn.Name)
	if err != nil {
		return f, err
	}
	f.ours = found
	if !found {
		_, err := r.AddOns.GetManagement(ctx, addOn.Name)
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
	if f.namespaceGoing, err = r.namespaceGoing(ctx, addOn.Namespace); err != nil {
		return f, err
	}
	if found && f.cluster != nil {
		f.rendering, f.renderErr = agent.Render(ctx, f.cluster, addOn)
	}
	return f, r.observeLeavingWorks(ctx, &f)
}

// clusterOf reads a cluster; nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}

// namespaceGoing reports whether nothing can be created in a namespace any more.
func (r *Reconciler) namespaceGoing(ctx context.Context, name string) (bool, error) {
	namespace, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, reconcile.Namespace())
	return err == nil && (namespace == nil || namespace.DeletionTimestamp != nil), err
}

// observeLeavingWorks reads the works that finalizers guard. Those of hosted mode may be in any namespace, which is
// looked through only for an add-on with such a finalizer.
func (r *Reconciler) observeLeavingWorks(ctx context.Context, f *leaveFacts) error {
	works, err := r.listWorks(ctx, client.ObjectKeyFromObject(f.addOn))
	if err != nil {
		return err
	}
	for _, work := range works {
		if work.Name == hookWorkName(f.addOn.Name) {
			f.hook = work
		}
	}
	if len(having(f.addOn, finalizerHostedHook, finalizerHostedHookOld, finalizerHostedObjects,
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

// finish does what was planned: the works first, then the finalizers go or the add-on says what it waits for.
func (r *Reconciler) finish(ctx context.Context, f leaveFacts, p leavePlan) reconcile.Outcome {
	outcome := reconcile.Done()
	if !p.wake.IsZero() {
		outcome = reconcile.Waiting(p.wake)
	}
	var steps []workStep
	if p.create != nil {
		steps = append(steps, workStep{Verb: reconcile.Create, After: p.create})
	}
	for _, work := range p.remove {
		steps = append(steps, workStep{Verb: reconcile.Delete, Before: work})
	}
	if err := errors.Join(runAll(ctx, r.workWriter(), steps)...); err != nil {
		outcome = outcome.And(reconcile.FromError(err))
		if len(p.remove) > 0 {
			return outcome
		}
	}
	if len(p.drop) > 0 {
		_, err := r.AddOns.PatchAddOn(ctx, f.addOn, p.released(f.addOn))
		if err == nil {
			r.tellReleased(ctx, f, p)
		}
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	after := f.addOn.DeepCopy()
	for _, condition := range p.conditions {
		condition.Message = cut(condition.Message)
		reconcile.SetCondition(&after.Status.Conditions, condition, f.now)
	}
	_, err := r.AddOns.PatchAddOnStatus(ctx, f.addOn, after)
	return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
}

// tellReleased says on the add-on that finalizers went, and why.
func (r *Reconciler) tellReleased(ctx context.Context, f leaveFacts, p leavePlan) {
	because := strings.Join(p.because, " ")
	log.FromContext(ctx).Info("removed finalizers", "finalizers", p.drop, "because", because)
	if r.Recorder == nil {
		return
	}
	kind, reason := corev1.EventTypeNormal, eventFinalizersRemoved
	if p.skipped {
		kind, reason = corev1.EventTypeWarning, eventHookSkipped
	}
	r.Recorder.Eventf(f.addOn, nil, kind, reason, "Delete", "Removed %s. %s", strings.Join(p.drop, ", "), because)
}
