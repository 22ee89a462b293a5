package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
		ops.field("/metadata/ownerReferences", was, is, len(was), len(is))
	}
	if was, is := before.GetFinalizers(), after.GetFinalizers(); !slices.Equal(was, is) {
		ops.field("/metadata/finalizers", was, is, len(was), len(is))
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

// field changes a field that had and has so many entries; without any, it is absent.
func (o *operations) field(path string, was, is any, had, has int) {
	switch {
	case had == 0:
		o.test(path, nil)
		*o = append(*o, operation{"op": "add", "path": path, "value": is})
	case has == 0:
		o.test(path, was)
		*o = append(*o, operation{"op": "remove", "path": path})
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
		o.field(path, nil, is, 0, len(is))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + escape(key)
		switch value, had := was[key]; {
		case !had:
			o.field(at, nil, is[key], 0, 1)
		case value != is[key]:
			o.change(at, value, is[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[key]; !stays {
			o.field(path+"/"+escape(key), was[key], nil, 1, 0)
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
