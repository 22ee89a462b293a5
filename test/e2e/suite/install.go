package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/test/e2e/cluster"
)

// fieldManager is the name under which objects are applied: that of a person with kubectl.
const fieldManager = "kubectl"

// Overlay is a kustomization of ours, as a user writes it, on top of a folder of manifests/.
type Overlay struct {
	// Name names the folder of the overlay in the folder of the suite.
	Name string
	// Base is the folder below manifests/.
	Base string
	// Namespace replaces the namespace of all objects; empty leaves it.
	Namespace string
	// Tag is the tag of our images.
	Tag string
	// Patches are strategic merge patches in YAML.
	Patches []string
}

// Render writes the overlay and returns the objects that kustomize makes of it, in its order.
func (f *Fleet) Render(o Overlay) ([]*unstructured.Unstructured, error) {
	dir := filepath.Join(f.options.Dir, o.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of overlay %s: %w", o.Name, err)
	}
	base, err := filepath.Rel(dir, filepath.Join(f.options.Manifests, o.Base))
	if err != nil {
		return nil, fmt.Errorf("finding manifests/%s: %w", o.Base, err)
	}
	kustomization := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{base},
	}
	if o.Namespace != "" {
		kustomization["namespace"] = o.Namespace
	}
	if o.Tag != "" {
		kustomization["images"] = []map[string]string{
			{"name": "spokelet/spokelet", "newTag": o.Tag}, {"name": "spokelet/spokelet-hub", "newTag": o.Tag},
		}
	}
	var patches []map[string]string
	for _, patch := range o.Patches {
		patches = append(patches, map[string]string{"patch": patch})
	}
	if patches != nil {
		kustomization["patches"] = patches
	}
	content, err := sigsyaml.Marshal(kustomization)
	if err != nil {
		return nil, fmt.Errorf("encoding overlay %s: %w", o.Name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o644); err != nil {
		return nil, fmt.Errorf("writing overlay %s: %w", o.Name, err)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as kubectl does
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building overlay %s: %w", o.Name, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("building overlay %s: %w", o.Name, err)
	}
	return Decode(text)
}

// Manifests reads the YAML files of a folder below manifests/ that is not a kustomization, in the order of their names.
func (f *Fleet) Manifests(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(f.options.Manifests, folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading manifests/%s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("manifests/%s has no YAML files", folder)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", folder, err)
		}
		objects, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Decode returns the objects of a stream of YAML documents.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decoding YAML: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Apply applies objects, in order, as "kubectl apply --server-side" does. A kind whose definition is among them is
// waited for.
func Apply(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		what := Describe(object)
		err := cluster.Until(ctx, what+" to be applied", func(ctx context.Context) error {
			err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.ForceOwnership,
				client.FieldOwner(fieldManager))
			if err != nil && !isStarting(err) {
				return fmt.Errorf("%w: %w", cluster.ErrFinal, err)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("applying to cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// Delete deletes objects, the last one first, and waits until all are gone, as "kubectl delete" does.
func Delete(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured) error {
	for _, object := range slices.Backward(objects) {
		err := c.Client.Delete(ctx, object.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !isAbsent(err) {
			return fmt.Errorf("deleting %s from cluster %s: %w", Describe(object), c.Name, err)
		}
	}
	for _, object := range slices.Backward(objects) {
		err := cluster.Until(ctx, Describe(object)+" to be gone from cluster "+c.Name, func(ctx context.Context) error {
			return Gone(ctx, c, object.DeepCopy())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Gone returns nil when an object does not exist, and otherwise that it is left, or why that is not known.
func Gone(ctx context.Context, c *cluster.Cluster, object client.Object) error {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case err == nil && object.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted; finalizers: %v", Describe(object), object.GetFinalizers())
	case err == nil:
		return fmt.Errorf("%s is left", Describe(object))
	case isAbsent(err):
		return nil
	}
	return err
}

// Describe names an object by kind, namespace and name.
func Describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", object)
	}
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + " " + namespace + "/" + object.GetName()
	}
	return kind + " " + object.GetName()
}

// isAbsent reports whether an error is that an object does not exist, or that nothing of its kind can.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// isStarting reports whether a request may pass later: something was installed a moment ago.
func isStarting(err error) bool {
	return isAbsent(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err)
}
