package decode

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/internal/message"
)

// mark begins the link to itself of an object that could not be decoded; the cause follows. API servers leave that
// field empty, and nobody can guess the rest.
var mark = "unknown:" + rand.Text() + ":" //nolint:gochecknoglobals // it never changes

// Bad is an object that could not be decoded.
type Bad struct {
	// Kind, Key, UID and Version are the object, as far as its metadata could be decoded.
	Kind    schema.GroupVersionKind
	Key     types.NamespacedName
	UID     types.UID
	Version string
	// Cause is why it could not be decoded.
	Cause string
}

// String names the object and the cause.
func (b Bad) String() string { return fmt.Sprintf("%s: %s", b.name(), b.Cause) }

func (b Bad) name() string {
	return b.Kind.Kind + " " + strings.TrimPrefix(b.Key.String(), "/")
}

// Object returns the object with its metadata, for an Event about it.
func (b Bad) Object() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.Key.Namespace, Name: b.Key.Name, UID: b.UID, ResourceVersion: b.Version,
	}}
	o.SetGroupVersionKind(b.Kind)
	return o
}

// Error is returned for an object that exists and is unknown, because it cannot be decoded.
type Error struct{ Bad }

// Error implements error.
func (e *Error) Error() string { return e.name() + " cannot be decoded: " + e.Cause }

// IsUnknown reports whether an error is about an object that exists and cannot be decoded.
func IsUnknown(err error) bool {
	var unknown *Error
	return errors.As(err, &unknown)
}

// Unknown returns why an object of a cache could not be decoded, and whether that is so. Only its metadata is true
// then.
func Unknown(o metav1.Object) (string, bool) { return strings.CutPrefix(o.GetSelfLink(), mark) }

// Undecodable reports that only a change of the object helps.
func (e *Error) Undecodable() bool { return true }

// Check returns an Error for an object of a cache that could not be decoded; nil for any other.
func Check(kind string, o metav1.Object) error {
	cause, unknown := Unknown(o)
	if !unknown {
		return nil
	}
	return &Error{Bad{
		Kind: schema.GroupVersionKind{Kind: kind}, Key: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
		UID: o.GetUID(), Version: o.GetResourceVersion(), Cause: cause,
	}}
}

// Mark makes an object unknown, because of a cause.
func Mark(o metav1.Object, cause string) { o.SetSelfLink(mark + cause) }

// kind decodes the objects of one kind.
type kind struct {
	gvk     schema.GroupVersionKind
	decoder runtime.Decoder
}

// verdict says what came of decoding one object.
type verdict struct {
	// raw is what a client decodes: the object itself, or its metadata with a mark; nil when not even that is possible.
	raw json.RawMessage
	// about is the object; bad reports whether it could not be decoded.
	about Bad
	bad   bool
}

// item decodes one object.
func (k kind) item(raw json.RawMessage) verdict {
	object, err := k.decode(raw)
	if err == nil {
		v := verdict{raw: raw, about: Bad{Kind: k.gvk}}
		if o, isObject := object.(metav1.Object); isObject {
			v.about = k.about(o, "")
		}
		return v
	}
	cause := message.Cut(err.Error(), message.MaxCause)
	partial := metav1.PartialObjectMetadata{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &partial); err != nil {
		return verdict{about: Bad{Kind: k.gvk, Cause: cause}, bad: true}
	}
	partial.SetGroupVersionKind(k.gvk)
	partial.ManagedFields = nil
	about := k.about(&partial, cause)
	Mark(&partial, cause)
	marked, err := json.Marshal(&partial)
	if err == nil {
		_, err = k.decode(marked)
	}
	if err != nil {
		return verdict{about: about, bad: true}
	}
	return verdict{raw: marked, about: about, bad: true}
}

// about describes an object.
func (k kind) about(o metav1.Object, cause string) Bad {
	return Bad{
		Kind: k.gvk, Key: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, UID: o.GetUID(),
		Version: o.GetResourceVersion(), Cause: cause,
	}
}

// decode decodes as a client does. What a type does with arbitrary input is not ours, so a panic is an error.
func (k kind) decode(raw json.RawMessage) (object runtime.Object, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("decoding panicked: %v", panicked)
		}
	}()
	object, _, err = k.decoder.Decode(raw, &k.gvk, nil)
	return object, err // it is the cause, as a client would report it
}

// list takes a list apart and returns it with what can be decoded of each item.
func (k kind) list(raw []byte) ([]byte, []verdict, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, fmt.Errorf("taking a list apart: %w", err)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(fields["items"], &items); err != nil {
		return nil, nil, fmt.Errorf("taking the items of a list apart: %w", err)
	}
	verdicts, kept := make([]verdict, len(items)), make([]json.RawMessage, 0, len(items))
	for i, item := range items {
		verdicts[i] = k.item(item)
		if verdicts[i].raw != nil {
			kept = append(kept, verdicts[i].raw)
		}
	}
	var err error
	if fields["items"], err = json.Marshal(kept); err != nil {
		return nil, nil, fmt.Errorf("putting the items of a list together: %w", err)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, fmt.Errorf("putting a list together: %w", err)
	}
	return whole, verdicts, nil
}

// event is an event of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// event takes an event of a watch apart. It returns what a client decodes, nil for an event that it must not see, and
// whether the event is about an object of this kind.
func (k kind) event(raw json.RawMessage) ([]byte, event, verdict, bool) {
	var e event
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &e); err != nil {
		return raw, e, verdict{}, false
	}
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
	default:
		return raw, e, verdict{}, false
	}
	v := k.item(e.Object)
	if !v.bad {
		return raw, e, v, true
	}
	if v.raw == nil {
		return nil, e, v, true
	}
	e.Object = v.raw
	marked, err := json.Marshal(e)
	if err != nil {
		return nil, e, v, true
	}
	return marked, e, v, true
}
