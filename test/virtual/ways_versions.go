package virtual

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// The versions of the add-on API.
const alpha, beta = "v1alpha1", "v1beta1"

// apiOf is how a hub has the add-on API: the version in which it stores objects, and those that it serves.
type apiOf struct {
	stored string
	served []string
}

// String implements fmt.Stringer.
func (a apiOf) String() string { return strings.Join(a.served, " and ") + ", stored in " + a.stored }

// apis are the hubs on which a way may lead: as ours and OCM's, as one of OCM before v1beta1, as one that no longer has
// v1alpha1, and as one on the way there.
func apis() []apiOf {
	both := []string{alpha, beta}
	return []apiOf{
		{alpha, both}, {alpha, []string{alpha}}, {alpha, both}, {beta, []string{beta}}, {alpha, both}, {beta, both},
	}
}

// shipped returns the definitions of a hub, with the webhook of its manager.
func shipped() ([][]byte, error) {
	address := "https://webhook/convert"
	return sandbox.CRDsWithConversion(apiextensionsv1.WebhookClientConfig{URL: &address})
}

// definitions returns the definitions of a hub.
func (a apiOf) definitions() ([][]byte, error) {
	all, err := shipped()
	if err != nil {
		return nil, err
	}
	for i, document := range all {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(document, &crd); err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		if crd.Spec.Group != addonv1alpha1.GroupName {
			continue
		}
		var versions []apiextensionsv1.CustomResourceDefinitionVersion
		for _, version := range crd.Spec.Versions {
			if version.Storage = version.Name == a.stored; slices.Contains(a.served, version.Name) {
				versions = append(versions, version)
			}
		}
		crd.Spec.Versions = versions
		if all[i], err = yaml.Marshal(&crd); err != nil {
			return nil, fmt.Errorf("writing a definition: %w", err)
		}
	}
	return all, nil
}

// draws lets people write in versions that random draws.
func (w way) draws(random *rand.Rand) way {
	w.version = func() string { return w.served[random.IntN(len(w.served))] }
	return w
}

// kinds are those of all that the hub manager writes for add-ons, in each version that is served.
func (w way) kinds() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{
		{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWork"},
		{Group: rbacv1.GroupName, Version: "v1", Kind: "RoleBinding"},
		{Group: clusterv1.GroupName, Version: "v1", Kind: "ManagedCluster"},
		{Group: clusterv1.GroupName, Version: "v1beta1", Kind: "Placement"},
		{Group: clusterv1.GroupName, Version: "v1beta1", Kind: "PlacementDecision"},
	}
	for _, version := range w.served {
		served := schema.GroupVersion{Group: addonv1alpha1.GroupName, Version: version}
		for _, kind := range []string{
			"ManagedClusterAddOn", "ClusterManagementAddOn", "AddOnTemplate", "AddOnDeploymentConfig",
		} {
			all = append(all, served.WithKind(kind))
		}
	}
	return all
}

// items reads all objects of a kind, as programs in Go see them: a field that is empty is no other than one that is not
// there.
func (w way) items(kind schema.GroupVersionKind) ([]map[string]any, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := w.admin.List(w.ctx, &list); err != nil {
		return nil, err
	}
	all := make([]map[string]any, 0, len(list.Items))
	for i := range list.Items {
		object := list.Items[i].Object
		if typed, err := w.scheme.New(kind); err == nil { // there is no type of AddOnTemplates in v1beta1
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
				return nil, err
			}
			if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
				return nil, err
			}
		}
		all = append(all, object)
	}
	return all, nil
}

// defaultNamespace is what v1beta1 shows of the namespace that the schema of v1alpha1 fills in. A hub without v1alpha1
// fills in nothing, which means the same.
const defaultNamespace = `"annotations":{"` + names.AnnotationInstallNamespace + `":"` +
	names.NamespaceAgentAddon + `"},`

// withoutAlpha returns a text without what it has only where v1alpha1 is served.
func (w way) withoutAlpha(text string) string {
	if slices.Contains(w.served, alpha) {
		return text
	}
	if w.author != nil {
		// The hash of what a work is rendered from. An author may use the annotations of the add-on, so it has them.
		text = regexp.MustCompile(`\\"inputs\\":\\"[0-9a-f]+`).ReplaceAllString(text, "inputs")
	}
	return strings.ReplaceAll(text, defaultNamespace, "")
}

// among returns what a hub that has fewer versions has of a state.
func (w way) among(state map[string]string) map[string]string {
	left := map[string]string{}
	for name, text := range state {
		left[name] = w.withoutAlpha(text)
	}
	maps.DeleteFunc(left, func(name, _ string) bool {
		version := name[strings.LastIndex(name, " ")+1:]
		return strings.Contains(name, "AddOn") && !slices.Contains(w.served, version)
	})
	return left
}

// wanted is an object as a person writes it, in a version that is drawn. People do not ask a webhook how to write it.
func (w way) wanted(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	kind, err := w.admin.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.SetGroupVersionKind(kind); kind.Group != addonv1alpha1.GroupName {
		return u, nil
	}
	delete(content, "status")
	if kind.Kind == "ClusterManagementAddOn" && w.author != nil {
		withoutTemplates(content)
	}
	if kind.Version = w.version(); kind.Version == alpha {
		return u, nil
	}
	u.SetGroupVersionKind(kind)
	spec, _ := content["spec"].(map[string]any)
	switch kind.Kind {
	case "ManagedClusterAddOn":
		if namespace, is := spec["installNamespace"].(string); is {
			u.SetAnnotations(map[string]string{names.AnnotationInstallNamespace: namespace})
		}
		delete(spec, "installNamespace")
	case "ClusterManagementAddOn":
		if old, _ := spec["addOnConfiguration"].(map[string]any); len(old) > 0 {
			u.SetAnnotations(map[string]string{names.AnnotationAddOnConfiguration: encoded(old)})
		}
		delete(spec, "addOnConfiguration")
		spec["defaultConfigs"] = defaultConfigs(spec["supportedConfigs"])
		delete(spec, "supportedConfigs")
	}
	return u, nil
}

// withoutTemplates lets an add-on have no templates, as one of a program.
func withoutTemplates(management map[string]any) {
	spec, _ := management["spec"].(map[string]any)
	configs, _ := spec["supportedConfigs"].([]any)
	spec["supportedConfigs"] = slices.DeleteFunc(configs, func(item any) bool {
		config, _ := item.(map[string]any)
		return config["resource"] == "addontemplates"
	})
}

// defaultConfigs are the supported configurations of v1alpha1 as v1beta1 has them.
func defaultConfigs(supported any) []any {
	all := []any{}
	list, _ := supported.([]any)
	for _, item := range list {
		one, _ := item.(map[string]any)
		config := map[string]any{"group": one["group"], "resource": one["resource"], "name": "__reserved_no_default__"}
		referent, _ := one["defaultConfig"].(map[string]any)
		maps.Copy(config, referent)
		all = append(all, config)
	}
	return all
}

// inAnnotations returns the annotations of an object that a person writes: those that stand for fields of another
// version are as wanted.
func inAnnotations(there, wanted map[string]string) map[string]string {
	all := maps.Clone(there)
	for _, key := range []string{names.AnnotationInstallNamespace, names.AnnotationAddOnConfiguration} {
		delete(all, key)
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	return all
}
