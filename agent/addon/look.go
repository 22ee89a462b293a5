package addon

import (
	"context"
	"reflect"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/lease"
)

const (
	kindDeployment = "Deployment"
	kindDaemonSet  = "DaemonSet"
	// maxLook is how many objects of a kind are looked at.
	maxLook = 100
	// sharedFor is how long what was read of a namespace serves the other add-ons there. It is shorter than the shortest
	// pause, so that a look never sees what the one before it saw.
	sharedFor = 3 * time.Second
	// lookGap is the time between two namespaces that are read, so that many add-ons that are not healthy do not ask the
	// API server all at once.
	lookGap = 200 * time.Millisecond
)

// looks remembers the last look at each add-on that is not healthy, so that events do not lead to more looks than the
// pauses allow. It is a cache: without it there is one look more.
type looks struct {
	mu     sync.Mutex
	last   map[string]look
	vistas map[place]*vista
	// next is when the next namespace may be read.
	next time.Time
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

// vista returns what was read of a place last, and forgets what is of no more use.
func (l *looks) vista(at place, now time.Time) *vista {
	at.hosting, at.problem = "", "" // they say nothing about where
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, v := range l.vistas {
		if other != at && v.mu.TryLock() {
			if now.Sub(v.at) >= sharedFor {
				delete(l.vistas, other)
			}
			v.mu.Unlock()
		}
	}
	if l.vistas == nil {
		l.vistas = map[place]*vista{}
	}
	if l.vistas[at] == nil {
		l.vistas[at] = &vista{}
	}
	return l.vistas[at]
}

// queue returns when the next namespace may be read, which nobody else does then.
func (l *looks) queue(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := l.next
	if turn.Before(now) {
		turn = now
	}
	l.next = turn.Add(lookGap)
	return turn
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
	if delete(l.last, addon); len(l.last) == 0 {
		l.vistas = nil
	}
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
	seen, turn := r.sight(ctx, last, now)
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

// vista is what was read of one namespace, for all add-ons in it.
type vista struct {
	// mu is held while the namespace is read, so that nobody else reads it at the same time.
	mu sync.Mutex
	at time.Time

	namespace      presence
	pods           []corev1.Pod
	podsKnown      bool
	deployments    []appsv1.Deployment
	daemons        []appsv1.DaemonSet
	workloadsKnown bool
}

// sight returns what is to be seen of the namespace of a look: what was read for another add-on a moment ago, else what
// is read now. Where too much was read lately, it returns instead when it is the turn of this look.
func (r *Reconciler) sight(ctx context.Context, last look, now time.Time) (*vista, time.Time) {
	v := r.looks.vista(last.place, now)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && now.Sub(v.at) < sharedFor {
		return v, time.Time{}
	}
	if last.turn.IsZero() {
		if turn := r.looks.queue(now); turn.After(now) {
			return nil, turn
		}
	}
	r.read(ctx, last.place, v)
	v.at = now
	return v, time.Time{}
}

// read reads a namespace.
func (r *Reconciler) read(ctx context.Context, at place, v *vista) {
	reader := r.sides[at.side].GetAPIReader()
	logger := log.FromContext(ctx).V(1)
	v.namespace, v.podsKnown, v.workloadsKnown = presenceUnknown, false, false
	v.pods, v.deployments, v.daemons = nil, nil, nil
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kindNamespace)))
	switch err := reader.Get(ctx, types.NamespacedName{Name: at.namespace}, namespace); {
	case apierrors.IsNotFound(err):
		v.namespace = presenceMissing
		return
	case err != nil:
		logger.Info("cannot look for the cause", "namespace", at.namespace, "error", err.Error())
	case !namespace.DeletionTimestamp.IsZero():
		v.namespace = presenceEnding
	default:
		v.namespace = presenceThere
	}
	options := []client.ListOption{client.InNamespace(at.namespace), client.Limit(maxLook)}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, options...); err != nil {
		logger.Info("cannot look for the cause", "kind", "Pod", "error", err.Error())
	} else {
		v.pods, v.podsKnown = pods.Items, pods.Continue == ""
	}
	var deployments appsv1.DeploymentList
	var daemons appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&deployments, &daemons} {
		if err := reader.List(ctx, list, options...); err != nil {
			logger.Info("cannot look for the cause", "kind", reflect.TypeOf(list).String(), "error", err.Error())
			return
		}
	}
	v.deployments, v.daemons = deployments.Items, daemons.Items
	v.workloadsKnown = deployments.Continue == "" && daemons.Continue == ""
}

// scene returns what one add-on sees of the namespace.
func (v *vista) scene(addon string) scene {
	s := scene{looked: true, namespace: v.namespace, podsKnown: v.podsKnown, workloadsKnown: v.workloadsKnown}
	for i := range v.pods {
		if v.pods[i].Status.Phase != corev1.PodSucceeded {
			s.pods = append(s.pods, podOf(addon, &v.pods[i]))
		}
	}
	s.workloads = workloadsOf(addon, v.deployments, v.daemons)
	return s
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
