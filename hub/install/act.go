package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
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
		_, err := reconcile.PatchMetadata(ctx, r.AddOns.Client, f.addon, p.update)
		return reconcile.FromError(client.IgnoreNotFound(err))
	}
	return reconcile.Done()
}

// isNamespaceGone reports whether an object was not created because its namespace is being deleted, or is gone.
func isNamespaceGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// actFleet records the decision on the ClusterManagementAddOn, and then removes add-ons: after a restart, what was
// confirmed is known.
func (r *Reconciler) actFleet(ctx context.Context, f fleetFacts, p removals) reconcile.Outcome {
	name := f.cma.GetName()
	r.memory.forget(name, f.last, p.done...)
	if err := r.annotate(ctx, f.cma, p.annotations); err != nil {
		return reconcile.FromError(err)
	}
	r.recordEvents(f, p)
	err := errors.Join(r.relabel(ctx, p), r.remove(ctx, f, p))
	outcome := reconcile.FromError(err).And(reconcile.DoneUntil(p.wake))
	if len(p.counted) > 0 {
		outcome = outcome.And(reconcile.DoneUntil(f.now)) // The next pass records what was removed.
	}
	return outcome
}

// annotate writes annotations of a ClusterManagementAddOn that differ.
func (r *Reconciler) annotate(ctx context.Context, cma client.Object, want map[string]string) error {
	if maps.Equal(cma.GetAnnotations(), want) {
		return nil
	}
	after := copyOf(cma)
	after.SetAnnotations(want)
	_, err := reconcile.PatchMetadata(ctx, r.AddOns.Client, cma, after)
	return client.IgnoreNotFound(err)
}

// remove deletes add-ons, several at a time. One that cannot be deleted does not stop the others.
func (r *Reconciler) remove(ctx context.Context, f fleetFacts, p removals) error {
	var mu sync.Mutex
	var failed []error
	var group errgroup.Group
	group.SetLimit(max(1, r.Workers))
	for i, c := range p.remove {
		group.Go(func() error {
			live, err := r.confirmCluster(ctx, f, c)
			if err == nil && i > 0 { // The first ones were confirmed a moment ago.
				err = r.still(ctx, f, p)
			}
			if err == nil {
				err = r.looked(f, c)
			}
			if err == nil {
				err = r.apart(ctx, f, live)
			}
			if err == nil {
				err = r.confirmOthers(ctx, f, c)
			}
			if err == nil {
				err = client.IgnoreNotFound(r.deleteAddOn(ctx, c.addon))
				// What is done counts, also where its answer is lost.
				if p.counted.Has(c.cluster) && !isRefused(err) {
					r.memory.remove(f.cma.GetName(), c.cluster, f.now)
				}
			}
			if err == nil {
				r.memory.forget(f.cma.GetName(), f.last, c.cluster)
				log.FromContext(ctx).Info("uninstalled the add-on: no placement selects the cluster", "cluster", c.cluster)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	return errors.Join(failed...)
}

// maxTries is how often the deletion of an add-on is guarded by its version in a pass.
const maxTries = 3

// deleteAddOn deletes an add-on that is as the cache has it. Its agent may write the status all the time, so that no
// version that is read is there still a moment later: where nothing else changes in several reads, its UID is guard
// enough.
func (r *Reconciler) deleteAddOn(ctx context.Context, addOn client.Object) error {
	version := addOn.GetResourceVersion()
	for tries := 1; ; tries++ {
		err := r.AddOns.DeleteAddOnVersion(ctx, addOn, version)
		if !apierrors.IsConflict(err) || tries > maxTries {
			return err
		}
		live, other := r.stillSame(ctx, addOn)
		if other != nil || live == nil {
			return errors.Join(err, other)
		}
		if version = live.ResourceVersion; tries == maxTries {
			version = ""
		}
	}
}

// stillSame returns an add-on of the cache as the API server has it; nil where more differs than its status.
func (r *Reconciler) stillSame(
	ctx context.Context, addOn client.Object,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	had, err := addonapi.AddOn(addOn)
	if err != nil {
		return nil, fmt.Errorf("comparing an add-on: %w", err)
	}
	live, err := r.AddOns.SameAddOn(ctx, r.Live, had)
	if err != nil || live == nil || !hubprocess.SameWishes(live, had) ||
		!equality.Semantic.DeepEqual(live.OwnerReferences, had.OwnerReferences) {
		return nil, err
	}
	return live, nil
}

// isRefused reports whether the answer to a request says that nothing was done.
func isRefused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err)
}

// recordEvents records Events on the ClusterManagementAddOn about add-ons that are not removed. Their text is the same
// for all clusters, so that these share one Event.
func (r *Reconciler) recordEvents(f fleetFacts, p removals) {
	news := r.memory.report(f.cma.GetName(), strings.Join(p.kept, "\n"))
	if r.Recorder == nil {
		return
	}
	for _, reason := range p.kept {
		if news {
			r.Recorder.Eventf(f.cma, nil, corev1.EventTypeWarning, "AddOnKept", "Uninstall",
				"Add-ons on clusters that no placement selects are kept: %s", reason)
		}
	}
	held := p.annotations[names.AnnotationRemovalHeld]
	if len(p.held) > 0 && held != f.cma.GetAnnotations()[names.AnnotationRemovalHeld] {
		r.Recorder.Eventf(f.cma, nil, corev1.EventTypeWarning, "RemovalHeld", "Uninstall", "%s", capitalized(held))
	}
	if p.confirmed {
		r.Recorder.Eventf(f.cma, nil, corev1.EventTypeNormal, "RemovalConfirmed", "Uninstall",
			"The add-on is removed from %d clusters, as a user confirmed", len(p.remove))
	}
}

// capitalized returns a text with a capital at its beginning.
func capitalized(text string) string {
	return fmt.Sprintf("%s%s", strings.ToUpper(text[:1]), text[1:])
}
