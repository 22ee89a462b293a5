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
)

const (
	// sharedFor is how long what was read of a namespace serves the other add-ons there. It is shorter than the shortest
	// pause, so that a look never sees what the one before it saw.
	sharedFor = 3 * time.Second
	// lookGap is the time between two namespaces that are read, so that many add-ons that are not healthy do not ask the
	// API server all at once.
	lookGap = 200 * time.Millisecond
)

// readings keeps what was read of namespaces a moment ago. It is a cache: without it namespaces are read more often.
type readings struct {
	mu   sync.Mutex
	last map[place]*reading
	// next is when the next namespace may be read.
	next time.Time
}

// of returns what was read of a place last, and forgets what is of no more use.
func (s *readings) of(at place, now time.Time) *reading {
	at.hosting, at.problem = "", "" // they say nothing about where
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, v := range s.last {
		if other != at && v.mu.TryLock() {
			if now.Sub(v.at) >= sharedFor {
				delete(s.last, other)
			}
			v.mu.Unlock()
		}
	}
	if s.last == nil {
		s.last = map[place]*reading{}
	}
	if s.last[at] == nil {
		s.last[at] = &reading{}
	}
	return s.last[at]
}

// turn returns when the next namespace may be read, which nobody else does then.
func (s *readings) turn(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.next
	if turn.Before(now) {
		turn = now
	}
	s.next = turn.Add(lookGap)
	return turn
}

// reading is what was read of one namespace, for all add-ons in it.
type reading struct {
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

// namespaceOf returns what is known of the namespace of a look: what was read for another add-on a moment ago, else
// what is read now. Where too much was read lately, it returns instead when it is the turn of this look.
func (r *Reconciler) namespaceOf(ctx context.Context, last look, now time.Time) (*reading, time.Time) {
	v := r.readings.of(last.place, now)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && now.Sub(v.at) < sharedFor {
		return v, time.Time{}
	}
	if last.turn.IsZero() {
		if turn := r.readings.turn(now); turn.After(now) {
			return nil, turn
		}
	}
	r.read(ctx, last.place, v)
	v.at = now
	return v, time.Time{}
}

// read reads a namespace.
func (r *Reconciler) read(ctx context.Context, at place, v *reading) {
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
func (v *reading) scene(addon string) scene {
	s := scene{looked: true, namespace: v.namespace, podsKnown: v.podsKnown, workloadsKnown: v.workloadsKnown}
	for i := range v.pods {
		if v.pods[i].Status.Phase != corev1.PodSucceeded {
			s.pods = append(s.pods, podOf(addon, &v.pods[i]))
		}
	}
	s.workloads = workloadsOf(addon, v.deployments, v.daemons)
	return s
}
