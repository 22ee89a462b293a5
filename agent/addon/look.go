package addon

import (
	"context"
	"reflect"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/lease"
)

const (
	kindDeployment = "Deployment"
	kindDaemonSet  = "DaemonSet"
	// maxLook is how many objects of a kind are looked at.
	maxLook = 100
)

// looks remembers the last look at each add-on that is not healthy, so that events do not lead to more looks than the
// pauses allow. It is a cache: without it there is one look more.
type looks struct {
	mu   sync.Mutex
	last map[string]look
}

// look is one look at an add-on.
type look struct {
	place place
	scene scene
	// pause is how long after at the next look is due.
	at    time.Time
	pause time.Duration
	// turn is when the next look is, once it is due and waits for others; zero when it does not.
	turn time.Time
}

// due is when the next look is.
func (l look) due() time.Time {
	if !l.turn.IsZero() {
		return l.turn
	}
	return l.at.Add(l.pause)
}

func (l *looks) get(addon string) (look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.last[addon]
	return last, ok
}

func (l *looks) put(addon string, last look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]look{}
	}
	l.last[addon] = last
}

func (l *looks) forget(addon string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, addon)
}

// observeScene looks at the namespace of an add-on that is not healthy, now and then. Nothing is read about a healthy
// one, nothing is watched or cached for it, and what may not be read is left out.
func (r *Reconciler) observeScene(ctx context.Context, f *facts) {
	if !lookMatters(*f) {
		r.looks.forget(f.name)
		return
	}
	at := placeOf(*f)
	last, ok := r.looks.get(f.name)
	switch {
	case !ok || last.place != at:
		last = look{place: at, at: f.now}
		if lease.Judge(leaseOf(f.lease), f.now, f.grace).State == lease.Missing {
			last.pause = firstLook
		}
		ok = last.pause > 0
	default:
		ok = f.now.Before(last.due())
	}
	if !ok {
		last = r.lookAgain(ctx, f.name, last, f.now)
	}
	r.looks.put(f.name, last)
	f.scene, f.lookAgain = last.scene, last.due()
}

// lookAgain looks, and returns the look with the pause until the next one; or the look before, to be repeated at its
// turn.
func (r *Reconciler) lookAgain(ctx context.Context, addon string, last look, now time.Time) look {
	seen, turn := r.namespaceOf(ctx, last, now)
	if !turn.IsZero() {
		last.turn = turn
		return last
	}
	scene := seen.scene(addon)
	return look{place: last.place, at: now, pause: pauseAfter(last, scene), scene: scene}
}

// pauseAfter is how long the look after one that saw this is put off: longer and longer while nothing changes.
func pauseAfter(last look, seen scene) time.Duration {
	if !last.scene.looked || !reflect.DeepEqual(last.scene, seen) {
		return againFirst
	}
	return min(2*last.pause, againLast)
}

// workloadsOf reads how Deployments and DaemonSets are.
func workloadsOf(addon string, deployments []appsv1.Deployment, daemons []appsv1.DaemonSet) []workload {
	var all []workload
	for i := range deployments {
		d := &deployments[i]
		w := workload{kind: kindDeployment, name: d.Name, own: bears(addon, d.ObjectMeta), wanted: 1}
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
			kind: kindDaemonSet, name: d.Name, own: bears(addon, d.ObjectMeta), wanted: d.Status.DesiredNumberScheduled,
		})
	}
	return all
}
