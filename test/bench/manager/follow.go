package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// again is how often all add-ons are looked at when the status of their ClusterManagementAddOns does not change.
const again = 2 * time.Second

// awaitCompleted waits until all add-ons on all clusters are Completed with the templates of a revision, and returns
// when the last ClusterManagementAddOn said so. That alone is not a proof: it counts the clusters that it knows.
func (r *run) awaitCompleted(ctx context.Context, revision int) (time.Time, error) {
	done := map[string]bool{}
	var ended time.Time
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		events, err := r.watchManagement(ctx, done, revision)
		if err != nil {
			return time.Time{}, err
		}
		for open := true; open; {
			if len(done) == r.Size.AddOns {
				if ended.IsZero() {
					ended = time.Now()
				}
				if completed, err := r.allCompleted(ctx, revision); err != nil || completed {
					events.Stop()
					return ended, err
				}
			}
			select {
			case <-ctx.Done():
				events.Stop()
				return time.Time{}, fmt.Errorf("%d of %d add-ons are completed: %w", len(done), r.Size.AddOns, context.Cause(ctx))
			case <-ticker.C:
			case event, more := <-events.ResultChan():
				open = more
				if cma, ok := event.Object.(*addonv1alpha1.ClusterManagementAddOn); ok {
					ended = time.Time{}
					note(done, cma, revision)
				}
			}
		}
		events.Stop()
	}
}

// watchManagement lists and watches the ClusterManagementAddOns.
func (r *run) watchManagement(ctx context.Context, done map[string]bool, revision int) (watch.Interface, error) {
	var list addonv1alpha1.ClusterManagementAddOnList
	if err := r.hub.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the add-ons: %w", err)
	}
	for i := range list.Items {
		note(done, &list.Items[i], revision)
	}
	events, err := r.hub.Watch(ctx, &addonv1alpha1.ClusterManagementAddOnList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("watching the add-ons: %w", err)
	}
	return events, nil
}

// note remembers whether a ClusterManagementAddOn is completed.
func note(done map[string]bool, cma *addonv1alpha1.ClusterManagementAddOn, revision int) {
	if installed(cma, revision) {
		done[cma.Name] = true
	} else {
		delete(done, cma.Name)
	}
}

// installed reports whether a ClusterManagementAddOn says that the template of a revision is everywhere.
func installed(cma *addonv1alpha1.ClusterManagementAddOn, revision int) bool {
	if len(cma.Status.InstallProgressions) != len(cma.Spec.InstallStrategy.Placements) {
		return false
	}
	for _, progression := range cma.Status.InstallProgressions {
		if !isCompleted(progression.Conditions) {
			return false
		}
		for _, reference := range progression.ConfigReferences {
			if reference.ConfigGroupResource == templates() &&
				!applied(reference.DesiredConfig, reference.LastAppliedConfig, templateName(cma.Name, revision)) {
				return false
			}
		}
	}
	return true
}

// completed reports whether an add-on on a cluster has the template of a name.
func completed(addOn *addonv1alpha1.ManagedClusterAddOn, template string) bool {
	if !isCompleted(addOn.Status.Conditions) {
		return false
	}
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.ConfigGroupResource == templates() {
			return applied(reference.DesiredConfig, reference.LastAppliedConfig, template)
		}
	}
	return false
}

// applied reports whether a config of a name is desired and in place.
func applied(desired, last *addonv1alpha1.ConfigSpecHash, name string) bool {
	return desired != nil && last != nil && desired.Name == name && *desired == *last
}

// isCompleted reports whether the condition Progressing says so.
func isCompleted(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, addonv1alpha1.ManagedClusterAddOnConditionProgressing)
	return c != nil && c.Reason == addonv1alpha1.ProgressingReasonCompleted
}

// allCompleted reports whether all add-ons on all clusters have the templates of a revision.
func (r *run) allCompleted(ctx context.Context, revision int) (bool, error) {
	n, next := 0, ""
	for {
		var list addonv1alpha1.ManagedClusterAddOnList
		if err := r.hub.List(ctx, &list, &client.ListOptions{Limit: 500, Continue: next}); err != nil {
			return false, fmt.Errorf("listing the add-ons of the clusters: %w", err)
		}
		for i := range list.Items {
			if !completed(&list.Items[i], templateName(list.Items[i].Name, revision)) {
				return false, nil
			}
		}
		n += len(list.Items)
		if next = list.Continue; next == "" {
			return n == r.Size.all(), nil
		}
	}
}

// awaitGone waits until no object of a kind is left.
func (r *run) awaitGone(ctx context.Context, list client.ObjectList) error {
	what := fmt.Sprintf("no %T to be left", list)
	return fleet.Wait(ctx, what, nil, func(ctx context.Context) error {
		if err := r.hub.List(ctx, list, client.Limit(1)); err != nil {
			return err
		}
		if left := meta.LenList(list); left > 0 {
			more := list.GetRemainingItemCount()
			if more != nil {
				left += int(*more)
			}
			return fleet.NotYet("%d are left", left)
		}
		return nil
	})
}
