package render

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errReadOnly is the error of every write but Create.
var errReadOnly = errors.New("the objects of files cannot be changed")

// objects is a hub in memory: a client over the objects of the files. It keeps what is created, and refuses every other
// write. It is for one goroutine.
type objects struct {
	kinds   map[string]map[client.ObjectKey]client.Object
	indexes map[string]client.IndexerFunc
}

var (
	_ client.Client       = &objects{}
	_ client.FieldIndexer = &objects{}
)

func newObjects() *objects {
	return &objects{
		kinds: map[string]map[client.ObjectKey]client.Object{}, indexes: map[string]client.IndexerFunc{},
	}
}

// kindOf identifies the kind of an object: by its Go type, or by its kind where the type is for any.
func kindOf(object runtime.Object) string {
	switch object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return object.GetObjectKind().GroupVersionKind().String()
	}
	return reflect.TypeOf(object).Elem().String()
}

// put adds an object, or replaces one.
func (o *objects) put(object client.Object) {
	kind := kindOf(object)
	if o.kinds[kind] == nil {
		o.kinds[kind] = map[client.ObjectKey]client.Object{}
	}
	o.kinds[kind][client.ObjectKeyFromObject(object)] = object
}

// IndexField implements client.FieldIndexer.
func (o *objects) IndexField(_ context.Context, of client.Object, field string, keys client.IndexerFunc) error {
	o.indexes[kindOf(of)+" "+field] = keys
	return nil
}

// Get implements client.Reader.
func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found := o.kinds[kindOf(into)][key]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(into)}, key.String())
	}
	return copyInto(found, into)
}

// copyInto overwrites an object with a copy of another of its type.
func copyInto(from, into runtime.Object) error {
	source, target := reflect.ValueOf(from.DeepCopyObject()), reflect.ValueOf(into)
	if source.Type() != target.Type() {
		return fmt.Errorf("a %T is read as %T", from, into)
	}
	target.Elem().Set(source.Elem())
	return nil
}

// List implements client.Reader.
func (o *objects) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := strings.TrimSuffix(kindOf(list), "List")
	if u, unstructured := list.(*unstructured.UnstructuredList); unstructured {
		gvk := u.GroupVersionKind()
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		kind = gvk.String()
	}
	var items []runtime.Object
	for _, key := range o.keys(kind) {
		object := o.kinds[kind][key]
		matches, err := o.matches(kind, object, options)
		if err != nil {
			return err
		}
		if matches {
			items = append(items, object.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	return nil
}

// keys returns the names of the objects of a kind, sorted.
func (o *objects) keys(kind string) []client.ObjectKey {
	keys := make([]client.ObjectKey, 0, len(o.kinds[kind]))
	for key := range o.kinds[kind] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// matches reports whether an object is among those that a list names.
func (o *objects) matches(kind string, object client.Object, options *client.ListOptions) (bool, error) {
	if options.Namespace != "" && object.GetNamespace() != options.Namespace {
		return false, nil
	}
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false, nil
	}
	if options.FieldSelector == nil {
		return true, nil
	}
	for _, requirement := range options.FieldSelector.Requirements() {
		if requirement.Field == metav1.ObjectNameField {
			if object.GetName() != requirement.Value {
				return false, nil
			}
			continue
		}
		keys := o.indexes[kind+" "+requirement.Field]
		if keys == nil {
			return false, fmt.Errorf("there is no index %s of %s", requirement.Field, kind)
		}
		if !slices.Contains(keys(object), requirement.Value) {
			return false, nil
		}
	}
	return true, nil
}

// Create implements client.Writer.
func (o *objects) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	kept, isObject := object.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("the copy of a %T is no object", object)
	}
	o.put(kept)
	return nil
}

// Update implements client.Writer.
func (*objects) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

// Patch implements client.Writer.
func (*objects) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Apply implements client.Writer.
func (*objects) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errReadOnly
}

// Delete implements client.Writer.
func (*objects) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}

// DeleteAllOf implements client.Writer.
func (*objects) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errReadOnly
}

// Status implements client.StatusClient.
func (o *objects) Status() client.SubResourceWriter { return o.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (*objects) SubResource(string) client.SubResourceClient { return subresource{} }

// Scheme implements client.Client; there is none.
func (*objects) Scheme() *runtime.Scheme { return runtime.NewScheme() }

// RESTMapper implements client.Client; it knows no kind.
func (*objects) RESTMapper() meta.RESTMapper { return meta.MultiRESTMapper{} }

// GroupVersionKindFor implements client.Client.
func (*objects) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return object.GetObjectKind().GroupVersionKind(), nil
}

// IsObjectNamespaced implements client.Client.
func (*objects) IsObjectNamespaced(object runtime.Object) (bool, error) {
	o, err := meta.Accessor(object)
	return err == nil && o.GetNamespace() != "", err
}

// subresource refuses everything.
type subresource struct{}

// Get implements client.SubResourceReader.
func (subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errReadOnly
}

// Create implements client.SubResourceWriter.
func (subresource) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errReadOnly
}

// Update implements client.SubResourceWriter.
func (subresource) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errReadOnly
}

// Patch implements client.SubResourceWriter.
func (subresource) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errReadOnly
}

// Apply implements client.SubResourceWriter.
func (subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errReadOnly
}
