package objectwatch

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Ref refers to an object of any kind. Namespace is empty for an object of a cluster-scoped kind.
type Ref struct{ Group, Resource, Namespace, Name string }

// GroupResource returns the resource of the object.
func (r Ref) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// String names the object for a person.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.GroupResource().String() + " " + r.Name
	}
	return r.GroupResource().String() + " " + r.Namespace + "/" + r.Name
}

// Phase says what is known of an object.
type Phase int

const (
	// Unknown means that the object may exist or not.
	Unknown Phase = iota
	// Missing means that the API server serves the kind and has no such object.
	Missing
	// Found means that the object exists.
	Found
)

// Reason is why an object is unknown.
type Reason string

const (
	// Pending means that the object has not been read yet; that takes moments.
	Pending Reason = "Pending"
	// NotServed means that the API server serves no such resource, or does not let anybody watch it.
	NotServed Reason = "NotServed"
	// WrongScope means that the reference has a namespace and the kind has none, or the reverse.
	WrongScope Reason = "WrongScope"
	// Forbidden means that a permission is missing.
	Forbidden Reason = "Forbidden"
	// LimitExceeded means that more objects are referenced than may be watched.
	LimitExceeded Reason = "LimitExceeded"
	// ShareExceeded means that nobody wants the object but owners that want more than their share.
	ShareExceeded Reason = "ShareExceeded"
	// Unavailable means that the API server did not answer, or with an error.
	Unavailable Reason = "Unavailable"
)

// Cause is why an object is unknown. Its message names the object and what a person can do.
type Cause struct {
	Reason  Reason
	Message string
}

// State holds what is known of an object.
type State struct {
	Phase Phase
	// Object is the object if it was found. It is shared and must not be changed.
	Object *unstructured.Unstructured
	// Cause is why the object is unknown; nil in the other phases.
	Cause *Cause
}

// same reports whether two states are equal for a caller. The messages of an API server that does not answer differ
// from request to request; only the reason counts then.
func (s State) same(other State) bool {
	switch {
	case s.Phase != other.Phase:
		return false
	case s.Phase == Found:
		return sameObject(s.Object, other.Object)
	case s.Phase == Unknown && s.Cause.Reason == Unavailable:
		return other.Cause.Reason == Unavailable
	case s.Phase == Unknown:
		return *s.Cause == *other.Cause
	}
	return true
}

// sameObject reports whether two versions of an object differ in nothing but their resource version.
func sameObject(a, b *unstructured.Unstructured) bool {
	if a == b {
		return true
	}
	version := b.GetResourceVersion()
	if a.GetResourceVersion() == version {
		return true
	}
	like := &unstructured.Unstructured{Object: maps.Clone(a.Object)}
	if metadata, ok := a.Object["metadata"].(map[string]any); ok {
		like.Object["metadata"] = maps.Clone(metadata)
	}
	like.SetResourceVersion(version)
	return equality.Semantic.DeepEqual(like.Object, b.Object)
}

// observed holds what the requests for an object showed.
type observed struct {
	// synced reports whether the object or its absence was observed; object is nil if it was absent.
	synced bool
	object *unstructured.Unstructured
	// list and watch are the errors of the last request with the verb; nil after a success.
	list, watch error
	// beyond reports that the object is not watched because of the limit.
	beyond bool
	// unshared reports that it is not watched because it is beyond the share of its owners.
	unshared bool
}

// cause returns the error that matters: a refusal before any other.
func (o observed) cause() error {
	for _, err := range []error{o.list, o.watch} {
		if refused(err) {
			return err
		}
	}
	return errors.Join(o.list, o.watch)
}

// refused reports whether an error makes the object unknown although it was observed before.
func refused(err error) bool { return apierrors.IsForbidden(err) || kindGone(err) }

// kindGone reports whether the API server does not serve the kind, or does not let anybody list and watch it.
func kindGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// stateOf returns what is known of an object from its kind and the answers to its requests.
func stateOf(ref Ref, k kind, o observed, limit int) State {
	unknown := func(reason Reason, format string, args ...any) State {
		return State{Cause: &Cause{Reason: reason, Message: fmt.Sprintf(format, args...)}}
	}
	err := o.cause()
	switch {
	case o.unshared:
		return unknown(ShareExceeded, "%s is not read, because more objects are referenced than the share of its owner", ref)
	case k.phase == kindPending && k.err != nil:
		return unknown(Unavailable, "%s cannot be read, because the discovery of its kind fails: %v", ref, k.err)
	case k.phase == kindPending:
		return unknown(Pending, "%s has not been read yet", ref)
	case k.phase == kindAbsent:
		return unknown(NotServed, "%s cannot be read, because the API server serves no resource %q %s; install its "+
			"CustomResourceDefinition or correct the reference", ref, ref.Resource, ofGroup(ref.Group))
	case k.phase == kindUnwatchable:
		return unknown(NotServed, "%s cannot be read, because the API server does not let anybody list and watch resource "+
			"%q %s", ref, ref.Resource, ofGroup(ref.Group))
	case k.namespaced && ref.Namespace == "":
		return unknown(WrongScope, "%s cannot be read, because objects of this kind are in namespaces and the reference "+
			"has none; add the namespace", ref)
	case !k.namespaced && ref.Namespace != "":
		return unknown(WrongScope, "%s cannot be read, because objects of this kind are in no namespace and the reference "+
			"has one; remove the namespace", ref)
	case o.beyond:
		return unknown(LimitExceeded, "%s is not read, because more objects are referenced than may be watched (%d)",
			ref, limit)
	case apierrors.IsForbidden(err):
		return unknown(Forbidden, "%s cannot be read: %s; grant the verbs list and watch on resource %q %s",
			ref, oneLine(err), ref.Resource, ofGroup(ref.Group))
	case kindGone(err):
		return unknown(NotServed, "%s cannot be read, because the API server does not serve its kind any more: %s",
			ref, oneLine(err))
	case o.synced && o.object != nil:
		return State{Phase: Found, Object: o.object}
	case o.synced:
		return State{Phase: Missing}
	case err != nil:
		return unknown(Unavailable, "%s cannot be read: %s", ref, oneLine(err))
	}
	return unknown(Pending, "%s has not been read yet", ref)
}

func ofGroup(group string) string {
	if group == "" {
		return "in the core API group"
	}
	return "in API group " + group
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// maxChanges is how many changed objects may wait for a controller before each waits in a goroutine of its own.
const maxChanges = 1024

// Changes hands each changed object to several controllers, as the callback of a Watcher.
type Changes []chan event.TypedGenericEvent[Ref]

// NewChanges returns Changes for a number of receivers.
func NewChanges(receivers int) Changes {
	all := make(Changes, receivers)
	for i := range all {
		all[i] = make(chan event.TypedGenericEvent[Ref], maxChanges)
	}
	return all
}

// Receiver returns the channel of one receiver; it is the only one that may read it.
func (c Changes) Receiver(index int) <-chan event.TypedGenericEvent[Ref] { return c[index] }

// Send never blocks its caller.
func (c Changes) Send(ref Ref) {
	for _, receiver := range c {
		e := event.TypedGenericEvent[Ref]{Object: ref}
		select {
		case receiver <- e:
		default:
			go func() { receiver <- e }()
		}
	}
}
