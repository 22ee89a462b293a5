package addon

import (
	"context"
	"reflect"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/lease"
)

const (
	kindDeployment = "Deployment"
	kindDaemonSet  = "DaemonSet"
	// maxListed is the largest number of objects of a kind that are read.
	maxListed = 100
)

// inspections keeps the last inspection of each unhealthy add-on, so that events do not cause more inspections than the
// pauses allow. It is a cache: without it there is one more inspection.
type inspections struct {
	mu   sync.Mutex
	last map[string]inspection
}

// inspection is one inspection of an add-on.
type inspection struct {
	place    place
	snapshot snapshot
	// pause is the time from at to the next inspection.
	at    time.Time
	pause time.Duration
	// turn is the time of the next inspection if it is due and waits for others; zero otherwise.
	turn time.Time
}

// due is the time of the next inspection.
func (i inspection) due() time.Time {
	if !i.turn.IsZero() {
		return i.turn
	}
	return i.at.Add(i.pause)
}

func (i *inspections) get(addon string) (inspection, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	last, ok := i.last[addon]
	return last, ok
}

func (i *inspections) put(addon string, last inspection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.last == nil {
		i.last = map[string]inspection{}
	}
	i.last[addon] = last
}

func (i *inspections) forget(addon string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.last, addon)
}

// observeSnapshot reads the namespace of an unhealthy add-on from time to time. Nothing is read, watched or cached for
// a healthy one, and objects that the agent may not read are left out.
func (r *Reconciler) observeSnapshot(ctx context.Context, f *facts) {
	if !inspectionNeeded(*f) {
		r.inspections.forget(f.name)
		return
	}
	at := placeOf(*f)
	last, ok := r.inspections.get(f.name)
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
	r.inspections.put(f.name, last)
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
		w := workload{kind: kindDeployment, name: d.Name, own: namedAfter(addon, d.ObjectMeta), wanted: 1}
		if d.Spec.Replicas != nil {
			w.wanted = *d.Spec.Replicas
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				w.failure = quote(c.Reason, c.Message)
			}
		}
		all = append(all, w)
	}
	for i := range daemons {
		d := &daemons[i]
		all = append(all, workload{
			kind: kindDaemonSet, name: d.Name, own: namedAfter(addon, d.ObjectMeta), wanted: d.Status.DesiredNumberScheduled,
		})
	}
	return all
}
