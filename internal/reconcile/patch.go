package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusField is the name of the status of an object in JSON, and statusMember in Go.
const statusField, statusMember = "status", "Status"

// SetCondition puts want into conditions. The transition time moves to now only when the status differs from the
// stored one. It returns whether anything changed.
func SetCondition(conditions *[]metav1.Condition, want metav1.Condition, now time.Time) bool {
	for i := range *conditions {
		have := &(*conditions)[i]
		if have.Type != want.Type {
			continue
		}
		want.LastTransitionTime = have.LastTransitionTime
		if have.Status != want.Status || have.LastTransitionTime.IsZero() {
			want.LastTransitionTime = metav1.NewTime(now)
		}
		if *have == want { // also the time, which is a copy
			return false
		}
		*have = want
		return true
	}
	want.LastTransitionTime = metav1.NewTime(now)
	*conditions = append(*conditions, want)
	return true
}

// PatchStatus writes the difference between two copies of one object to its status subresource as one JSON merge
// patch, guarded by UID and resourceVersion. It sends nothing and returns false when the copies do not differ. A
// conflict comes back as the API error, to be sorted by FromError. after receives the answer of the server.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	patch, err := guardedPatch(before, after, statusField)
	if err != nil || patch == nil {
		return false, err
	}
	if err := c.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("patching the status of %s: %w", Describe(after), err)
	}
	return true, nil
}

// PutStatus replaces the status of an object, guarded by UID and resourceVersion; the API server ignores the rest of
// the object. It costs the API server less than PatchStatus (docs/adr/0008), and it is for a status that has one
// writer only: a field that our types do not have is lost. A conflict comes back as the API error, and object receives
// the answer of the server.
func PutStatus(ctx context.Context, c client.Client, object client.Object) error {
	if err := c.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("writing the status of %s: %w", Describe(object), err)
	}
	return nil
}

// PatchMain writes the difference between two copies of one object, its status aside, as one JSON merge patch guarded
// by UID and resourceVersion. It sends nothing and returns false when the copies do not differ.
func PatchMain(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	patch, err := guardedPatch(before, after, "")
	if err != nil || patch == nil {
		return false, err
	}
	if err := c.Patch(ctx, after, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("patching %s: %w", Describe(after), err)
	}
	return true, nil
}

// guardedPatch returns the merge patch from before to after, of only the field named by only or, when that is empty,
// of all but the status; nil when they do not differ. The patch carries the UID and resourceVersion of before.
func guardedPatch(before, after client.Object, only string) ([]byte, error) {
	from, to := part(before, only), part(after, only)
	// Most passes change nothing, and comparing is a tenth of the work of encoding both.
	if reflect.DeepEqual(from, to) {
		return nil, nil
	}
	diff, err := mergePatch(from, to, kindOf(after))
	if err != nil {
		return nil, err
	}
	keep := map[string]any{}
	for key, value := range diff {
		if (only != "" && key == only) || (only == "" && key != statusField) {
			keep[key] = value
		}
	}
	if len(keep) == 0 {
		return nil, nil
	}
	meta := map[string]any{}
	if changed, found := diff["metadata"]; found && only == "" {
		if err := json.Unmarshal(changed, &meta); err != nil {
			return nil, fmt.Errorf("decoding the patch of %s: %w", kindOf(after), err)
		}
	}
	meta["uid"] = string(before.GetUID())
	meta["resourceVersion"] = before.GetResourceVersion()
	keep["metadata"] = meta
	return json.Marshal(keep)
}

// part returns what of an object has to be compared for a patch of the status, or of all but the status. It shares
// memory with the object. Of an object without a Go type it is the whole.
func part(o client.Object, only string) any {
	value := reflect.ValueOf(o)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return o
	}
	status := value.Elem().FieldByName(statusMember)
	switch {
	case !status.IsValid():
		return o
	case only == statusField:
		return map[string]any{statusField: status.Interface()}
	}
	without := reflect.New(value.Elem().Type())
	without.Elem().Set(value.Elem())
	without.Elem().FieldByName(statusMember).SetZero()
	return without.Interface()
}

// mergePatch returns the fields of the merge patch between two parts of objects of a kind.
func mergePatch(before, after any, kind string) (map[string]json.RawMessage, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kind, err)
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kind, err)
	}
	raw, err := jsonpatch.CreateMergePatch(writable(from), writable(to))
	if err != nil {
		return nil, fmt.Errorf("comparing two copies of %s: %w", kind, err)
	}
	var diff map[string]json.RawMessage
	if err := json.Unmarshal(raw, &diff); err != nil {
		return nil, fmt.Errorf("decoding the patch of %s: %w", kind, err)
	}
	return diff, nil
}

// Agents and users write times as they like. Those of the last hours of the year 9999 and the first of the year 0 are
// of other years in UTC, as Go encodes them, and no API server takes those: a list of conditions with one could not be
// written any more. The bounds are those of the definitions that we ship (manifests/gen).
const (
	earliestTime = "1000-01-01T00:00:00Z"
	latestTime   = "8999-12-31T23:59:59Z"
)

// tooEarly and tooLate find times in JSON that are written again.
var tooEarly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(lastTransitionTime|timeAdded)":"(?:-[0-9]+|0[0-9]{3})-[^"]*"`)
})

var tooLate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(lastTransitionTime|timeAdded)":"(?:9[0-9]{3}|[0-9]{5,})-[^"]*"`)
})

// writable returns JSON with times that an API server takes.
func writable(raw []byte) []byte {
	raw = tooEarly().ReplaceAll(raw, []byte(`"$1":"`+earliestTime+`"`))
	return tooLate().ReplaceAll(raw, []byte(`"$1":"`+latestTime+`"`))
}

// kindOf returns the kind of an object for messages; where it is not set, the name of the Go type, which is the same.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(o)).Type().Name()
}

// WithEntries returns a copy of labels or annotations with the given entries set; those of others stay.
func WithEntries(have, want map[string]string) map[string]string {
	merged := maps.Clone(have)
	if merged == nil {
		merged = make(map[string]string, len(want))
	}
	maps.Copy(merged, want)
	return merged
}

// WithOwners returns a copy of owner references with the given ones set; those of others stay.
func WithOwners(have, want []metav1.OwnerReference) []metav1.OwnerReference {
	merged := slices.Clone(have)
	for _, owner := range want {
		at := slices.IndexFunc(merged, func(other metav1.OwnerReference) bool { return other.UID == owner.UID })
		if at < 0 {
			merged = append(merged, owner)
			continue
		}
		merged[at] = owner
	}
	return merged
}

// PatchMetadata writes the difference between the labels, annotations, owners and finalizers of two copies of an object
// as one JSON patch. It is guarded by the UID, the generation and what it changes, and not by the resourceVersion: a
// user who may write the status of the object all the time could let each other patch fail. Where one of them is not as
// before, the patch is that of PatchMain. It sends nothing and returns false when the copies do not differ.
func PatchMetadata(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	ops := metadataOperations(before, after, false)
	if len(ops) == 0 {
		return false, nil
	}
	err := ops.send(ctx, c, before, after)
	if others := metadataOperations(before, after, true); apierrors.IsInvalid(err) && !reflect.DeepEqual(ops, others) {
		err = others.send(ctx, c, before, after) // There are labels or annotations that a cache does not keep.
	}
	if apierrors.IsInvalid(err) {
		return PatchMain(ctx, c, before, after)
	}
	return err == nil, err
}

// metadataOperations returns the operations for the difference of two copies. others tells whether the object has other
// labels or annotations where before has none.
func metadataOperations(before, after client.Object, others bool) operations {
	var ops operations
	ops.entries("/metadata/labels", before.GetLabels(), after.GetLabels(), others)
	ops.entries("/metadata/annotations", before.GetAnnotations(), after.GetAnnotations(), others)
	if was, is := before.GetOwnerReferences(), after.GetOwnerReferences(); !reflect.DeepEqual(was, is) {
		changeList(&ops, "/metadata/ownerReferences", was, is)
	}
	if was, is := before.GetFinalizers(), after.GetFinalizers(); !slices.Equal(was, is) {
		changeList(&ops, "/metadata/finalizers", was, is)
	}
	if generation := before.GetGeneration(); generation != 0 && len(ops) > 0 {
		ops.test("/metadata/generation", generation)
	}
	return ops
}

// operation is one operation of a JSON patch (RFC 6902). A test of null is one of a value that is absent.
type operation map[string]any

type operations []operation

// test adds a test, which comes before all changes.
func (o *operations) test(path string, value any) {
	*o = slices.Insert(*o, 0, operation{"op": "test", "path": path, "value": value})
}

// change changes a value that is there.
func (o *operations) change(path string, was, is any) {
	o.test(path, was)
	*o = append(*o, operation{"op": "replace", "path": path, "value": is})
}

// add adds a value where there is none.
func (o *operations) add(path string, is any) {
	o.test(path, nil)
	*o = append(*o, operation{"op": "add", "path": path, "value": is})
}

// remove removes a value that is there.
func (o *operations) remove(path string, was any) {
	o.test(path, was)
	*o = append(*o, operation{"op": "remove", "path": path})
}

// changeList changes a list, which is absent without entries.
func changeList[T any](o *operations, path string, was, is []T) {
	switch {
	case len(was) == 0:
		o.add(path, is)
	case len(is) == 0:
		o.remove(path, was)
	default:
		o.change(path, was, is)
	}
}

// entries changes those entries of a map that differ. Others may change its other entries meanwhile.
func (o *operations) entries(path string, was, is map[string]string, others bool) {
	if maps.Equal(was, is) {
		return
	}
	if len(was) == 0 && !others {
		o.add(path, is)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + escape(key)
		switch value, had := was[key]; {
		case !had:
			o.add(at, is[key])
		case value != is[key]:
			o.change(at, value, is[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[key]; !stays {
			o.remove(path+"/"+escape(key), was[key])
		}
	}
}

// escape makes a key a part of a JSON pointer (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// send writes the patch to an object. after receives the answer of the server.
func (o operations) send(ctx context.Context, c client.Client, before, after client.Object) error {
	o = slices.Clone(o)
	o.test("/metadata/uid", before.GetUID())
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding the patch of %s: %w", Describe(after), err)
	}
	if err := c.Patch(ctx, after, client.RawPatch(types.JSONPatchType, raw)); err != nil {
		return fmt.Errorf("patching %s: %w", Describe(after), err)
	}
	return nil
}
