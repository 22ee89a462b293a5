package render_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/render"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	pages    = "../../../docs/operations"
	samples  = "../../../manifests/samples"
	testdata = "../../../hub/render/testdata"
)

// clusters are what the files of the tests leave out and render would assume.
const clusters = `
apiVersion: v1
kind: Namespace
metadata: {name: weather-central}
---
apiVersion: v1
kind: Namespace
metadata: {name: probes}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: test}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: office}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: centre}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata:
  name: hello-1
  namespace: open-cluster-management-addons
  labels: {cluster.open-cluster-management.io/placement: hello}
status:
  decisions:
    - {clusterName: office, reason: ""}
`

// notes is the add-on of code on two clusters, on one of them in hosted mode.
const notes = `
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: notes}
spec: {}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ManagedClusterAddOn
metadata:
  name: notes
  namespace: office
  annotations: {addon.open-cluster-management.io/values: '{"text":"buy tea"}'}
spec: {installNamespace: notes}
---
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ManagedClusterAddOn
metadata:
  name: notes
  namespace: test
  annotations: {addon.open-cluster-management.io/hosting-cluster-name: centre}
spec: {}
`

// files returns all files of the tests; of a page, its examples.
func files(t *testing.T) []render.File {
	t.Helper()
	all := []render.File{{Name: "clusters", Text: clusters}, {Name: "notes", Text: notes}}
	paths, err := filepath.Glob(samples + "/hello/*.yaml")
	require.NoError(t, err)
	paths = append(paths, pages+"/templates.md", testdata+"/weather-fleet.yaml", testdata+"/hosted.yaml")
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(raw)
		if filepath.Ext(path) == ".md" {
			var examples []string
			for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
				examples = append(examples, block[1])
			}
			text = strings.Join(examples, "---\n")
		}
		all = append(all, render.File{Name: path, Text: text})
	}
	return all
}

// What is printed from files is what a hub manager writes for them, in all that is not of the object on the hub alone.
//
// Shows: hub/render-as-the-hub
func TestWhatIsPrintedIsWhatTheHubManagerWrites(t *testing.T) {
	input := files(t)
	agents, err := addon.NewFixed(newNotes(t))
	require.NoError(t, err)
	want := map[string]map[string]any{}
	for _, program := range []render.Program{{Name: "spokelet-hub"}, {Agents: agents, AddOns: []string{"notes"}}} {
		text, err := program.Render(t.Context(), input, render.Options{})
		require.NoError(t, err)
		objects, err := addon.ParseYAML(text)
		require.NoError(t, err)
		for _, work := range objects {
			defaulted := asStored(t, work)
			want[work.GetNamespace()+"/"+work.GetName()] = essence(t, defaulted)
		}
	}
	require.NoError(t, apply(t, input))

	// The works of hooks follow when the add-ons are deleted.
	hooks := maps.Clone(want)
	maps.DeleteFunc(hooks, func(name string, _ map[string]any) bool { return !strings.Contains(name, "-pre-delete") })
	living := maps.Clone(want)
	maps.DeleteFunc(living, func(name string, _ map[string]any) bool { return hooks[name] != nil })
	require.Len(t, living, 9, slices.Sorted(maps.Keys(living)))
	require.Len(t, hooks, 8, slices.Sorted(maps.Keys(hooks)))
	suite.Eventually(t, func() error { return sameWorks(t, living, func(string) bool { return true }) })

	addOns := list(t, schema.GroupVersionKind{Group: "addon.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedClusterAddOnList"})
	for i := range addOns {
		require.NoError(t, hub.Client.Delete(t.Context(), &addOns[i]))
	}
	suite.Eventually(t, func() error {
		return sameWorks(t, hooks, func(name string) bool { return strings.Contains(name, "-pre-delete") })
	})
}

// sameWorks returns how the works on the hub that selected accepts differ from those that are wanted.
func sameWorks(t *testing.T, want map[string]map[string]any, selected func(string) bool) error {
	t.Helper()
	have := map[string]map[string]any{}
	for _, work := range list(t, schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWorkList"}) {
		if selected(work.GetName()) {
			have[work.GetNamespace()+"/"+work.GetName()] = essence(t, &work)
		}
	}
	return suite.Checks(func(c assert.TestingT) {
		assert.Equal(c, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)))
		for name, work := range have {
			assert.Equal(c, want[name], work, name)
		}
	})()
}

// asStored returns a printed work with the defaults of the API server, which checks it.
func asStored(t *testing.T, work *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	tried := work.DeepCopy()
	tried.SetName("tried-" + work.GetName())
	tried.SetNamespace("default")
	tried.SetOwnerReferences(nil) // It is without the UID.
	require.NoError(t, hub.Client.Create(t.Context(), tried, client.DryRunAll))
	stored := work.DeepCopy()
	stored.Object["spec"] = tried.Object["spec"]
	return stored
}

// essence returns what both a printed work and one on the hub have.
func essence(t *testing.T, work *unstructured.Unstructured) map[string]any {
	t.Helper()
	u := work.DeepCopy()
	delete(u.Object, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers", "deletionTimestamp",
		"deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", names.AnnotationAddonUID)
	if len(u.GetAnnotations()) == 0 {
		u.SetAnnotations(nil)
	}
	owners, _, err := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
	require.NoError(t, err)
	for _, owner := range owners {
		fields, isMap := owner.(map[string]any)
		require.True(t, isMap)
		delete(fields, "uid")
	}
	if owners != nil {
		require.NoError(t, unstructured.SetNestedSlice(u.Object, owners, "metadata", "ownerReferences"))
	}
	raw, err := json.Marshal(u.Object)
	require.NoError(t, err)
	var plain map[string]any
	require.NoError(t, json.Unmarshal(raw, &plain))
	return plain
}

func list(t *testing.T, kind schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind)
	require.NoError(t, hub.Client.List(t.Context(), all))
	return all.Items
}

// apply creates the objects of files on the hub: what a cluster needs when the hub manager has made its namespace.
func apply(t *testing.T, input []render.File) error {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range input {
		parsed, err := addon.ParseYAML(file.Text)
		if err != nil {
			return err
		}
		for _, u := range parsed {
			if u.GetKind() == "Kustomization" {
				continue
			}
			if !u.IsList() {
				objects = append(objects, u)
				continue
			}
			items, err := u.ToList()
			if err != nil {
				return err
			}
			for i := range items.Items {
				objects = append(objects, &items.Items[i])
			}
		}
	}
	order := []string{"Namespace", "ManagedCluster", "AddOnTemplate", "AddOnDeploymentConfig", "ConfigMap", "ClusterManagementAddOn"}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		place := func(u *unstructured.Unstructured) int {
			if i := slices.Index(order, u.GetKind()); i >= 0 {
				return i
			}
			return len(order)
		}
		return place(a) - place(b)
	})
	for _, u := range objects {
		suite.Eventually(t, func() error { return create(t.Context(), u.DeepCopy()) })
	}
	return nil
}

// create creates an object with its status.
func create(ctx context.Context, u *unstructured.Unstructured) error {
	status, hasStatus := u.Object["status"]
	err := hub.Client.Create(ctx, u)
	if apierrors.IsAlreadyExists(err) && len(u.GetAnnotations()) > 0 { // A Placement was faster.
		var raw []byte
		if raw, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": u.GetAnnotations()}}); err == nil {
			err = hub.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw))
		}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if !hasStatus {
		return nil
	}
	u.Object["status"] = status
	if err := hub.Client.Status().Update(ctx, u); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}
