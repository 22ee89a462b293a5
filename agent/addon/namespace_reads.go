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
	// sharedFor is the time for which the objects of a namespace are shared with the other add-ons there. It is shorter
	// than the shortest pause, so that two inspections of one add-on never use the same objects.
	sharedFor = 3 * time.Second
	// readInterval is the time between the reads of two namespaces, so that many unhealthy add-ons do not send their
	// requests at once.
	readInterval = 200 * time.Millisecond
)

// namespaceReads shares the objects of namespaces that were just read. It is a cache: without it namespaces are read
// more often.
type namespaceReads struct {
	mu   sync.Mutex
	last map[place]*namespaceRead
	// next is the time at which the next namespace may be read.
	next time.Time
}

// of returns the last read of a place, and deletes reads that are too old.
func (s *namespaceReads) of(at place, now time.Time) *namespaceRead {
	at.hosting, at.problem = "", "" // they do not identify the namespace
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
		s.last = map[place]*namespaceRead{}
	}
	if s.last[at] == nil {
		s.last[at] = &namespaceRead{}
	}
	return s.last[at]
}

// turn reserves and returns the time at which the next namespace may be read.
func (s *namespaceReads) turn(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.next
	if turn.Before(now) {
		turn = now
	}
	s.next = turn.Add(readInterval)
	return turn
}

// namespaceRead has the objects of one namespace, for all add-ons in it.
type namespaceRead struct {
	// mu is held while the namespace is read, so that it is read once.
	mu sync.Mutex
	at time.Time

	namespace      presence
	pods           []corev1.Pod
	podsKnown      bool
	deployments    []appsv1.Deployment
	daemons        []appsv1.DaemonSet
	workloadsKnown bool
}

// namespaceOf returns the objects of the namespace of an inspection: those just read for another add-on, or else those
// that it reads now. If other namespaces were just read, it returns the time of the turn of this inspection instead.
func (r *Reconciler) namespaceOf(ctx context.Context, last inspection, now time.Time) (*namespaceRead, time.Time) {
	v := r.reads.of(last.place, now)
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && now.Sub(v.at) < sharedFor {
		return v, time.Time{}
	}
	if last.turn.IsZero() {
		if turn := r.reads.turn(now); turn.After(now) {
			return nil, turn
		}
	}
	r.read(ctx, last.place, v)
	v.at = now
	return v, time.Time{}
}

// read reads a namespace.
func (r *Reconciler) read(ctx context.Context, at place, v *namespaceRead) {
	reader := r.sides[at.side].GetAPIReader()
	logger := log.FromContext(ctx).V(1)
	v.podsKnown, v.workloadsKnown = false, false
	v.pods, v.deployments, v.daemons = nil, nil, nil
	var err error
	if v.namespace, err = readPresence(ctx, reader, at.namespace); err != nil {
		logger.Info("cannot look for the cause", "namespace", at.namespace, "error", err.Error())
	}
	if v.namespace == presenceMissing {
		return
	}
	options := []client.ListOption{client.InNamespace(at.namespace), client.Limit(maxListed)}
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

// readPresence reads the state of a namespace; it is unknown if it cannot be read.
func readPresence(ctx context.Context, reader client.Reader, name string) (presence, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kindNamespace)))
	switch err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
		return presenceMissing, nil
	case err != nil:
		return presenceUnknown, err
	case !namespace.DeletionTimestamp.IsZero():
		return presenceEnding, nil
	}
	return presenceThere, nil
}

// snapshot returns the objects as far as they concern one add-on.
func (v *namespaceRead) snapshot(addon string) snapshot {
	s := snapshot{taken: true, namespace: v.namespace, podsKnown: v.podsKnown, workloadsKnown: v.workloadsKnown}
	for i := range v.pods {
		if v.pods[i].Status.Phase != corev1.PodSucceeded {
			s.pods = append(s.pods, podOf(addon, &v.pods[i]))
		}
	}
	s.workloads = workloadsOf(addon, v.deployments, v.daemons)
	return s
}
