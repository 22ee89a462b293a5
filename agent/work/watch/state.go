package watch

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/pause"
)

// State is everything that this process knows of one object for one owner. A State is never changed once it is in the
// Store; its parts are replaced as a whole, each by the one package that is named.
type State struct {
	// Applied is the last request for the desired state that succeeded or failed for good (apply).
	Applied Applied
	// Failed is why that request failed for good; nil when it succeeded (apply).
	Failed *Failure
	// Object is the object as that request read or wrote it (apply, prune).
	Object Object
	// ReadErr is why the object could not be read, so that it is unknown whether it exists (apply).
	ReadErr error
	// Requested is the instant of the last request; zero means never (apply, prune).
	Requested time.Time
	// Deletion is the deletion of the object; nil when none was requested and none failed (prune).
	Deletion *Deletion
	// Feedback holds what the rules of the manifest read from the object; nil without rules (apply).
	Feedback *Feedback
	// Repairs limits how often the object is repaired, Reads how often it is read because it changed (apply).
	Repairs, Reads Limiter
	// Bytes are those of the largest answer of the API server about the object in the last pass that asked for it; zero
	// means that none did (work).
	Bytes int
	// Observed is the last event before the request; it is older than the response (Store).
	Observed *Event
}

// Mode is how a manifest was handled.
type Mode int

const (
	// Write means that the object was brought to the desired state.
	Write Mode = iota
	// ReadFrozen means that the object was only read, because its manifest is complete.
	ReadFrozen
	// ReadDenied means that the object was only read, because the executor of the work lacks permissions.
	ReadDenied
)

// Applied identifies a request for the desired state of an object; the zero value means none.
type Applied struct {
	// Desired digests the desired state, and Owner is the UID of the AppliedManifestWork that owns the object.
	Desired manifest.Digest
	Owner   types.UID
	// Mode is how the manifest was handled.
	Mode Mode
	// Behind reports that a frozen object did not have the desired state.
	Behind bool
}

// Is reports whether two requests are for the same desired state in the same mode.
func (a Applied) Is(b Applied) bool {
	return a.Desired == b.Desired && a.Owner == b.Owner && a.Mode == b.Mode
}

// Failure is a request that failed for good.
type Failure struct {
	// Cause is the error.
	Cause *manifest.PermanentError
	// Since is since when the API server refuses the request; zero when it does not.
	Since time.Time
}

// Object is the part of a live object that a State keeps; the zero value means that it does not exist.
type Object struct {
	// UID, Version and Generation are those of its metadata.
	UID        types.UID
	Version    string
	Generation int64
	// Meta is the hash of the rest of its metadata, see HashMeta.
	Meta uint64
	// Content digests the content that the API server made of the desired state.
	Content manifest.Digest
	// Sole reports that our AppliedManifestWork owns the object and no other one does.
	Sole bool
	// Exists reports whether there is an object.
	Exists bool
}

// ObjectOf returns what a State keeps of a live object, without content and owners.
func ObjectOf(live metav1.Object) Object {
	return Object{
		Exists: true, UID: live.GetUID(), Version: live.GetResourceVersion(), Generation: live.GetGeneration(),
		Meta: HashMeta(live),
	}
}

// Deletion is the deletion of an object that is not gone yet.
type Deletion struct {
	// Requested reports that the API server accepted the deletion.
	Requested bool
	// Since is when the object should have gone: when its deletion was requested, or the end of its grace period, or when
	// the deletion could first not be requested.
	Since time.Time
	// Finalizers are those that hold the object, Cause what else is known about why it is not gone.
	Finalizers []string
	Cause      string
	// Next is when the object is looked at again without an event.
	Next time.Time
}

// Feedback holds what the rules of a manifest read from its object.
type Feedback struct {
	// Rules digests the rules.
	Rules manifest.Digest
	// Values are the feedback values, and Err is why some of them could not be read.
	Values []workv1.FeedbackValue
	Err    string
	// Conditions are the results of the condition rules.
	Conditions []metav1.Condition
	// Cost is the cost of the rules in units of CEL.
	Cost int64
	// Late reports that a rule was not evaluated to its end, for which the time is to blame and not the object. The rules
	// are evaluated again without an event.
	Late bool
}

// Rules digests the rules whose results the state has; zero means none.
func (s *State) Rules() manifest.Digest {
	if s.Feedback == nil {
		return manifest.Digest{}
	}
	return s.Feedback.Rules
}

// Late reports whether the rules are evaluated again without an event.
func (s *State) Late() bool { return s.Feedback != nil && s.Feedback.Late }

// Event is the last that a watch showed of an object. It is never changed once it is in the Store.
type Event struct {
	UID        types.UID
	Version    string
	Generation int64
	Meta       uint64
	// Deleted reports that the object is gone.
	Deleted bool
	// Unknown reports that the object may be as it was, different, or gone: its kind is not served, or its watch begins
	// and does not show what there is.
	Unknown bool
}

// EventOf returns the event of an object that exists.
func EventOf(object metav1.Object) Event {
	return Event{
		UID: object.GetUID(), Version: object.GetResourceVersion(), Generation: object.GetGeneration(),
		Meta: HashMeta(object),
	}
}

// Drift is how the last event differs from the last request.
type Drift int

const (
	// Unchanged means that no newer event was observed.
	Unchanged Drift = iota
	// StatusOnly means that neither content nor metadata changed, and that a rule reads the status.
	StatusOnly
	// Modified means that the object may be different.
	Modified
	// Deleted means that the object is gone.
	Deleted
)

// drift compares an event with a state. An event that changed neither content nor metadata, and whose status no rule
// reads, is put into the state at once.
func (s *State) drift(e *Event) Drift {
	switch {
	case e == nil || e == s.Observed:
		return Unchanged
	case e.Unknown:
		return Modified
	case e.Deleted && s.Object.Exists && !Older(e.Version, s.Object.Version):
		return Deleted
	case e.Deleted:
		return Unchanged
	case !s.Object.Exists:
		return Modified
	case e.Version == s.Object.Version || Older(e.Version, s.Object.Version):
		return Unchanged
	case s.Failed != nil || !s.Object.SameButStatus(*e):
		return Modified
	case s.Feedback != nil:
		return StatusOnly
	}
	s.Object.Version = e.Version
	return Unchanged
}

// SameButStatus reports whether an object differs from an event in its status at most: the API server counts
// generations for its kind and counted none, and the metadata is the same.
func (o *Object) SameButStatus(e Event) bool {
	return e.UID == o.UID && e.Generation > 0 && e.Generation == o.Generation && e.Meta == o.Meta
}

const (
	// RecheckPause is the least time after which an object that cannot be watched is read again, or a manifest that
	// failed for good is tried again. recheckSpread lengthens it by up to a half, so that not all come together.
	RecheckPause  = 5 * time.Minute
	recheckSpread = 0.5
	// firstRetry is how long after its first refusal by the API server a manifest is tried again.
	firstRetry = 100 * time.Millisecond
)

// RecheckAt is when an object that cannot be watched is read again.
func (s *State) RecheckAt(id manifest.ID) time.Time {
	return s.Requested.Add(pause.Spread(RecheckPause, recheckSpread, id.String()))
}

// RetryAt is when a manifest that failed for good, or whose rules were not evaluated to their end, is tried again
// without an event; zero for all others. Some causes of a refusal, such as a missing permission, a quota or a webhook,
// go away without an event. Such a manifest is tried again after as long as it has been refused so far, and at least as
// often as all others.
func (s *State) RetryAt(id manifest.ID) time.Time {
	switch {
	case s.Failed == nil && s.Late():
		return s.RecheckAt(id)
	case s.Failed == nil:
		return time.Time{}
	}
	at := s.RecheckAt(id)
	if since := s.Failed.Since; !since.IsZero() {
		sooner := s.Requested.Add(max(s.Requested.Sub(since), firstRetry))
		if sooner.Before(at) {
			return sooner
		}
	}
	return at
}

// HashMeta hashes the metadata that may change without the generation: labels, annotations, owners, finalizers, and
// whether there is a deletion timestamp.
func HashMeta(object metav1.Object) uint64 {
	sum := fnv.New64a()
	put := func(parts ...string) {
		for _, part := range parts {
			_, _ = sum.Write([]byte(part))
			_, _ = sum.Write([]byte{0})
		}
		_, _ = sum.Write([]byte{1})
	}
	for _, labels := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			put(key, labels[key])
		}
		put()
	}
	for _, ref := range object.GetOwnerReferences() {
		put(ref.APIVersion, ref.Kind, ref.Name, string(ref.UID))
	}
	put()
	put(object.GetFinalizers()...)
	if object.GetDeletionTimestamp() != nil {
		put("deleting")
	}
	return sum.Sum64()
}

// Older reports whether the resource version a is surely older than b. Versions that are empty or no numbers have no
// order.
func Older(a, b string) bool {
	if a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
