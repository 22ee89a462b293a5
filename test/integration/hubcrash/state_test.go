package hubcrash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// state is all that the hub manager made of the add-on: each object as JSON, without what differs from run to run.
type state map[string]string

// compared are the kinds of the state.
var compared = []schema.GroupVersionKind{
	{Group: groupAddOn, Version: "v1alpha1", Kind: "ClusterManagementAddOn"},
	{Group: groupAddOn, Version: "v1alpha1", Kind: "ManagedClusterAddOn"},
	{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"},
	{Group: groupCluster, Version: "v1beta1", Kind: "Placement"},
	{Group: groupCluster, Version: "v1beta1", Kind: "PlacementDecision"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

const (
	groupAddOn   = "addon.open-cluster-management.io"
	groupCluster = "cluster.open-cluster-management.io"
)

// look reads the state. Of the stored contents those count that something refers to.
func look(ctx context.Context) (state, error) {
	s, addOns := state{}, map[string]string{}
	for _, kind := range compared {
		objects, err := list(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if kind.Kind == "ManagedClusterAddOn" {
				addOns[string(object.GetUID())] = object.GetNamespace() + "/" + object.GetName()
			}
			nameAddOn(object, addOns)
			if kind.Kind != "RoleBinding" || object.GetLabels()[names.LabelAddonName] == addOn {
				s.add(object)
			}
		}
	}
	revisions, err := contents(ctx)
	if err != nil {
		return nil, err
	}
	everything := strings.Join(slices.Collect(maps.Values(s)), "\n")
	for _, revision := range revisions {
		// Its number says when it was stored. What nobody refers to is deleted after ten seconds, so that a life on a slow
		// machine stores a content once more when it goes back.
		delete(revision.Object, "revision")
		if strings.Contains(everything, hashOf(revision.GetAnnotations()[names.AnnotationConfigKey])) {
			s.add(revision)
		}
	}
	return s, nil
}

// contents lists the stored contents of configurations.
func contents(ctx context.Context) ([]unstructured.Unstructured, error) {
	return list(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
		client.InNamespace(names.NamespaceHub), client.MatchingLabels{names.LabelAddonName: addOn})
}

func list(
	ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption,
) ([]unstructured.Unstructured, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(kind)
	if err := plane.Client.List(ctx, &found, options...); err != nil {
		return nil, err
	}
	return found.Items, nil
}

// nameAddOn replaces the UID of the add-on of a work, which differs from run to run, by its name. That of an add-on that
// does not exist stays, and is a difference.
func nameAddOn(work unstructured.Unstructured, addOns map[string]string) {
	annotations := work.GetAnnotations()
	if name := addOns[annotations[names.AnnotationAddonUID]]; name != "" {
		annotations[names.AnnotationAddonUID] = name
		work.SetAnnotations(annotations)
	}
}

func (s state) add(object unstructured.Unstructured) {
	strip(object.Object)
	text, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		text = []byte(err.Error())
	}
	s[fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())] = string(text)
}

// strip removes what differs from run to run: times, versions, identities, the order of conditions.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range []string{
			"lastTransitionTime", "observedGeneration", "generation", "resourceVersion", "uid", "creationTimestamp",
			"managedFields", names.AnnotationRemovalState,
		} {
			delete(v, key)
		}
		if conditions, ok := v["conditions"].([]any); ok {
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		}
		for _, inner := range v {
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// typeOf returns the type of a condition; their order has no meaning.
func typeOf(condition any) string {
	fields, _ := condition.(map[string]any)
	return fmt.Sprint(fields["type"])
}

// differs returns how a state differs from the one that it should be; nil when it does not.
func (s state) differs(want state) error {
	var differences []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch have, found := s[key]; {
		case !found:
			differences = append(differences, key+" is missing")
		case have != want[key]:
			differences = append(differences, key+" differs:\n"+lines(have, want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, found := want[key]; !found {
			differences = append(differences, key+" is left:\n"+s[key])
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%d differences:\n%s", len(differences), strings.Join(differences, "\n"))
}

// lines returns the lines that only one of two texts has.
func lines(have, want string) string {
	var text strings.Builder
	haves, wants := strings.Split(have, "\n"), strings.Split(want, "\n")
	for _, line := range haves {
		if !slices.Contains(wants, line) {
			fmt.Fprintf(&text, "  is:        %s\n", strings.TrimSpace(line))
		}
	}
	for _, line := range wants {
		if !slices.Contains(haves, line) {
			fmt.Fprintf(&text, "  should be: %s\n", strings.TrimSpace(line))
		}
	}
	return text.String()
}
