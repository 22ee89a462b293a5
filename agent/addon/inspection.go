package addon

import (
	"context"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/unready"
	"github.com/spokelet/spokelet/lease"
)

// maxListed is the largest number of objects of a kind that are read.
const maxListed = 100

// observeSnapshot reads the namespace of an unhealthy add-on from time to time. Nothing is read, watched or cached for
// a healthy one, and objects that the agent may not read are left out.
func (r *Reconciler) observeSnapshot(ctx context.Context, f *facts) {
	if !inspectionNeeded(*f) {
		r.inspections.Forget(f.name)
		return
	}
	at := placeOf(*f)
	last, ok := r.inspections.Get(f.name)
	switch {
	case !ok || last.place != at:
		last = inspection{place: at, at: f.now}
		if lease.Judge(leaseOf(f.lease), f.now, f.grace).State == lease.Missing {
			last.pause = firstInspection
		}
		ok = last.pause > 0
	default:
		ok = f.now.Before(last.due())
	}
	if !ok {
		last = r.inspect(ctx, f.name, last, f.now)
	}
	r.inspections.Put(f.name, last)
	f.snapshot, f.nextInspection = last.snapshot, last.due()
}

// inspect returns a new inspection, or the last one with the time of its turn.
func (r *Reconciler) inspect(ctx context.Context, addon string, last inspection, now time.Time) inspection {
	seen, turn := r.namespaceOf(ctx, last, now)
	if !turn.IsZero() {
		last.turn = turn
		return last
	}
	snapshot := seen.snapshot(addon)
	return inspection{place: last.place, at: now, pause: pauseAfter(last, snapshot), snapshot: snapshot}
}

// pauseAfter returns the pause after an inspection; it grows while nothing changes.
func pauseAfter(last inspection, seen snapshot) time.Duration {
	if !last.snapshot.taken || !reflect.DeepEqual(last.snapshot, seen) {
		return minRecheck
	}
	return pause.Growing{First: minRecheck, Last: maxRecheck}.Next(last.pause)
}

// workloadsOf reads the state of Deployments and DaemonSets.
func workloadsOf(addon string, deployments []appsv1.Deployment, daemons []appsv1.DaemonSet) []workload {
	var all []workload
	for i := range deployments {
		d := &deployments[i]
		w := workload{kind: unready.KindDeployment, name: d.Name, own: namedAfter(addon, d.ObjectMeta), wanted: 1}
		if d.Spec.Replicas != nil {
			w.wanted = *d.Spec.Replicas
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				w.failure = unready.Quote(c.Reason, c.Message)
			}
		}
		all = append(all, w)
	}
	for i := range daemons {
		d := &daemons[i]
		all = append(all, workload{
			kind: unready.KindDaemonSet, name: d.Name, own: namedAfter(addon, d.ObjectMeta),
			wanted: d.Status.DesiredNumberScheduled,
		})
	}
	return all
}
