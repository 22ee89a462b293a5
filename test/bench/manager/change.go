package manager

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// flat is how many times the cost of a change at the smallest size a change at a larger size may cost.
const flat = 1.3

// change gives one add-on on one cluster a template of its own, on one cluster after the other, and measures until each
// is Completed.
func (r *run) change(ctx context.Context) error {
	const name = "one change on one cluster to Completed"
	revision, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	// The clusters are far apart, so that they are not neighbours in lists.
	changes := min(r.Changes, r.Size.Clusters)
	stride := r.Size.Clusters / changes
	var took []time.Duration
	c, err := r.cost(ctx, "change", func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		for n := range changes {
			one, err := r.changeOne(ctx, clusterName(n*stride), addOnName(n%r.Size.AddOns), revision)
			if err != nil {
				return 0, err
			}
			took = append(took, one)
		}
		return time.Since(began), nil
	})
	if err != nil {
		return err
	}
	r.Time(r.title+name+", p50", measure.Percentile(took, 0.50), 0)
	r.Time(r.title+name+", p90", measure.Percentile(took, 0.90), 0)
	each := c.processor / time.Duration(changes)
	r.Note(r.title+name+", processor", each.Round(100*time.Microsecond).String(), "", true)
	r.Number(r.title+name+", requests", float64(c.requests.Count)/float64(changes), 1, "", 0)
	c.took, c.processor = measure.Percentile(took, 0.50), each
	r.perChange = c
	r.compareChange()
	if err := r.release(ctx, changes, stride); err != nil {
		return err
	}
	return r.quiet(ctx)
}

// changeOne moves one add-on on one cluster to the template of a revision, and returns how long that took.
func (r *run) changeOne(ctx context.Context, cluster, addOn string, revision int) (time.Duration, error) {
	key := client.ObjectKey{Namespace: cluster, Name: addOn}
	var found addonv1alpha1.ManagedClusterAddOn
	if err := r.hub.Get(ctx, key, &found); err != nil {
		return 0, fmt.Errorf("reading add-on %s: %w", key, err)
	}
	// The watch begins with the present state: on a large hub the version of an object that rests is soon too old.
	events, err := r.hub.Watch(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster),
		client.MatchingFields{"metadata.name": addOn})
	if err != nil {
		return 0, fmt.Errorf("watching add-on %s: %w", key, err)
	}
	defer events.Stop()
	before := found.DeepCopy()
	found.Spec.Configs = []addonv1alpha1.AddOnConfig{config(addOn, revision)}
	began := time.Now()
	if err := r.hub.Patch(ctx, &found, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("changing add-on %s: %w", key, err)
	}
	err = fleet.AwaitEvent(ctx, events, func(e watch.Event) bool {
		now, ok := e.Object.(*addonv1alpha1.ManagedClusterAddOn)
		return ok && completed(now, templateName(addOn, revision))
	})
	if err != nil {
		return 0, fmt.Errorf("changing add-on %s: %w", key, err)
	}
	return time.Since(began), nil
}

// release takes the templates of their own away from the changed add-ons, so that the next step begins with one
// template for all.
func (r *run) release(ctx context.Context, changes, stride int) error {
	err := spread(ctx, changes, func(ctx context.Context, n int) error {
		return r.hub.Patch(ctx, &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterName(n * stride), Name: addOnName(n % r.Size.AddOns)},
		}, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"configs":null}}`)))
	})
	if err != nil {
		return fmt.Errorf("taking back the changes: %w", err)
	}
	_, err = r.awaitCompleted(ctx, r.revision)
	return err
}

// compareChange relates the cost of a change to that at the smallest size.
func (r *run) compareChange() {
	if r.smallest == nil || r.smallest.perChange.took == 0 || r.smallest.perChange.processor == 0 {
		return
	}
	change, first := r.perChange, r.smallest.perChange
	name := r.title + "one change beside one at " + r.smallest.Size.String()
	r.Number(name+", time", float64(change.took)/float64(first.took), 2, "x", flat)
	r.Number(name+", processor", float64(change.processor)/float64(first.processor), 2, "x", flat)
}

// compareDeletion relates the cost of a deletion with a hook to that at the smallest size.
func (r *run) compareDeletion() {
	if r.smallest == nil || r.smallest.perDeletion == 0 {
		return
	}
	r.Number(r.title+"one deletion with a hook beside one at "+r.smallest.Size.String()+", processor",
		float64(r.perDeletion)/float64(r.smallest.perDeletion), 2, "x", flat)
}
