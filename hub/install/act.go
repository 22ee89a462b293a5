package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// act carries out the plan for one add-on on one cluster.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) reconcile.Outcome {
	switch {
	case p.notReady != nil:
		log.FromContext(ctx).V(1).Info("the add-on waits to be installed", "reason", p.notReady.Error())
		if p.foreign && r.Recorder != nil {
			r.Recorder.Eventf(f.cma, nil, corev1.EventTypeWarning, "NamespaceOfOthers", "Install",
				"The add-on is not installed on cluster %s: %s", f.cluster, p.notReady.Error())
		}
		if p.outdated {
			return reconcile.FromError(behindDefinition(f.cma.GetName()))
		}
	case p.create != nil:
		err := r.AddOns.CreateAddOn(ctx, p.create)
		if isNamespaceGone(err) {
			// The cache is behind; the event of the namespace starts the next pass.
			log.FromContext(ctx).V(1).Info("the add-on waits to be installed", "reason", err.Error())
			return reconcile.Done()
		}
		if err == nil {
			log.FromContext(ctx).Info("installed the add-on")
			r.memory.came(p.create.Name, f.cluster)
		}
		return reconcile.FromError(err)
	case p.update != nil:
		_, err := r.AddOns.PatchWire(ctx, f.addon, p.update)
		return reconcile.FromError(client.IgnoreNotFound(err))
	}
	return reconcile.Done()
}

// isNamespaceGone reports whether an object was not created because its namespace is being deleted, or is gone.
func isNamespaceGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
