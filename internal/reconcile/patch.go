package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
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
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing two copies of %s: %w", kind, err)
	}
	var diff map[string]json.RawMessage
	if err := json.Unmarshal(raw, &diff); err != nil {
		return nil, fmt.Errorf("decoding the patch of %s: %w", kind, err)
	}
	return diff, nil
}

// kindOf returns the kind of an object for messages; where it is not set, the name of the Go type, which is the same.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(o)).Type().Name()
}
