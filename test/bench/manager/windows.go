package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// labelWindow is the label by which each cluster has a window of its own.
	labelWindow = "bench.spokelet.io/window"
	// windowLength is how long an occurrence is.
	windowLength = 10 * time.Minute
	// edgeAhead is how far off the edge is at least for which all windows are changed.
	edgeAhead = time.Minute
)

// windows gives each cluster a maintenance window, leaves the hub manager alone, and lets all windows begin in the same
// minute. Nothing waits for them: what is measured is the cost of having windows.
func (r *run) windows(ctx context.Context) error {
	far := time.Now().UTC().Add(12 * time.Hour)
	err := r.windowCost(ctx, "a window for each cluster", func(ctx context.Context) error {
		err := r.eachWindow(ctx, func(ctx context.Context, name string) error {
			mark := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, labelWindow, name))
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			return errors.Join(r.hub.Patch(ctx, cluster, mark), r.hub.Create(ctx, window(name, far)))
		})
		if err != nil {
			return err
		}
		return r.awaitWindows(ctx, "to know their clusters", func(w *policies.MaintenanceWindow) bool {
			return w.Status.Clusters == 1
		})
	})
	if err != nil {
		return err
	}
	if err := r.noteMemory("memory with a window for each cluster", 0); err != nil {
		return err
	}
	before, err := r.at()
	if err != nil {
		return err
	}
	if !fleet.Pause(ctx, r.Idle) {
		return context.Cause(ctx)
	}
	after, err := r.at()
	if err != nil {
		return err
	}
	sent := after.requests.Since(before.requests)
	r.Note(fmt.Sprintf("%srequests over %s at rest with a window for each cluster", r.title, r.Idle),
		fmt.Sprint(sent.Count), "0", sent.Count == 0)
	milli := 1000 * float64(after.processor-before.processor) / float64(r.Idle)
	r.Number(r.title+"processor at rest with a window for each cluster", milli, 1, "m", 0)
	return errors.Join(r.windowEdge(ctx), r.windowCost(ctx, "the windows go", func(ctx context.Context) error {
		return r.hub.DeleteAllOf(ctx, &policies.MaintenanceWindow{})
	}))
}

// windowEdge lets all windows begin, and waits until their status says that they are active.
func (r *run) windowEdge(ctx context.Context) error {
	var edge time.Time
	err := r.windowCost(ctx, "all windows are changed", func(ctx context.Context) error {
		edge = time.Now().UTC().Add(r.Size.patience() / 10).Add(edgeAhead).Truncate(time.Minute)
		return r.eachWindow(ctx, func(ctx context.Context, name string) error {
			change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"schedule":%q}}`, scheduleAt(edge)))
			return r.hub.Patch(ctx, &policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: name}}, change)
		})
	})
	if err != nil {
		return err
	}
	if !fleet.Pause(ctx, time.Until(edge)-2*settled) {
		return context.Cause(ctx)
	}
	return r.windowCost(ctx, "all windows begin", func(ctx context.Context) error {
		return r.awaitWindows(ctx, "to be active", func(w *policies.MaintenanceWindow) bool { return w.Status.Active })
	})
}

// awaitWindows waits until something holds for all windows.
func (r *run) awaitWindows(ctx context.Context, what string, holds func(*policies.MaintenanceWindow) bool) error {
	return fleet.Wait(ctx, "the windows "+what, nil, func(ctx context.Context) error {
		var all policies.MaintenanceWindowList
		if err := r.hub.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if !holds(&all.Items[i]) {
				return fleet.NotYet("of %d windows, %s does not", len(all.Items), all.Items[i].Name)
			}
		}
		return nil
	})
}

// windowCost measures what a step costs, in all and for each window.
func (r *run) windowCost(ctx context.Context, name string, do func(context.Context) error) error {
	began := time.Now()
	c, err := r.cost(ctx, name, func(ctx context.Context) (time.Duration, error) {
		err := do(ctx)
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	r.Number(r.title+name+", requests per window", float64(c.requests.Count)/float64(r.Size.Clusters), 2, "", 0)
	r.Time(r.title+name+", processor", c.processor, 0)
	return nil
}

// eachWindow calls do with the name of each cluster, which is that of its window.
func (r *run) eachWindow(ctx context.Context, do func(ctx context.Context, name string) error) error {
	return spread(ctx, r.Size.Clusters, func(ctx context.Context, i int) error { return do(ctx, clusterName(i)) })
}

// window is the window of a cluster that begins each day at an instant of the day.
func window(cluster string, at time.Time) *policies.MaintenanceWindow {
	return &policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: cluster},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Allow", Schedule: scheduleAt(at), Duration: metav1.Duration{Duration: windowLength},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelWindow: cluster}},
		},
	}
}

// scheduleAt is the schedule of each day at an instant of the day.
func scheduleAt(at time.Time) string { return fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()) }
