package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
		if equality.Semantic.DeepEqual(*have, want) {
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
	patch, err := guardedPatch(before, after, "status")
	if err != nil || patch == nil {
		return false, err
	}
	if err := c.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("patching the status of %s: %w", Describe(after), err)
	}
	return true, nil
}

// PutStatus replaces the status of an object, guarded by UID and resourceVersion; the API server ignores the rest of
// the object. It costs the API server less than PatchStatus (docs/adr/0022), and it is for a status that has one
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
	from, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kindOf(before), err)
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kindOf(after), err)
	}
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing two copies of %s: %w", kindOf(after), err)
	}
	var diff map[string]any
	if err := json.Unmarshal(raw, &diff); err != nil {
		return nil, fmt.Errorf("decoding the patch of %s: %w", kindOf(after), err)
	}
	keep := map[string]any{}
	for key, value := range diff {
		if (only != "" && key == only) || (only == "" && key != "status") {
			keep[key] = value
		}
	}
	if len(keep) == 0 {
		return nil, nil
	}
	meta, _ := keep["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["uid"] = string(before.GetUID())
	meta["resourceVersion"] = before.GetResourceVersion()
	keep["metadata"] = meta
	return json.Marshal(keep)
}

// kindOf returns the kind of an object for messages; where it is not set, the name of the Go type, which is the same.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(o)).Type().Name()
}
