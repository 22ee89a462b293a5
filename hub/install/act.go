package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// act carries out the plan.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) error {
	switch {
	case p.create != nil:
		if err := r.AddOns.CreateAddOn(ctx, p.create); err != nil {
			return err
		}
		log.FromContext(ctx).Info("installed the add-on")
	case p.update != nil:
		_, err := r.AddOns.PatchAddOn(ctx, f.addon, p.update)
		return client.IgnoreNotFound(err)
	case p.remove:
		if err := r.AddOns.DeleteAddOn(ctx, f.addon); err != nil {
			return client.IgnoreNotFound(err)
		}
		log.FromContext(ctx).Info("uninstalled the add-on: no placement selects the cluster")
	}
	return nil
}

// recordEvents records an Event on the ClusterManagementAddOn about an add-on that is not uninstalled. Its text is the
// same for all clusters, so that they share one Event.
func (r *Reconciler) recordEvents(ctx context.Context, f facts, p plan) {
	if p.notReady != nil {
		log.FromContext(ctx).V(1).Info("the add-on waits to be installed", "reason", p.notReady.Error())
	}
	if p.blocked == nil || !p.wake.IsZero() {
		return
	}
	log.FromContext(ctx).V(1).Info("the add-on is kept", "reason", p.blocked.Error())
	if r.Recorder != nil {
		r.Recorder.Eventf(f.cma, nil, corev1.EventTypeWarning, "AddOnKept", "Uninstall",
			"Add-ons on clusters that no placement selects are kept: %s", p.blocked.Error())
	}
}
