package merge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"

	"github.com/openshift/library-go/pkg/operator/resource/resourcemerge"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/manifest"
)

// Delta is how a live object differs from its manifest.
type Delta int

const (
	// Equal means that nothing is to be written.
	Equal Delta = iota
	// Extra means that the live content has all values of the manifest and more: defaults of the server, or values that
	// were added on the spoke.
	Extra
	// Changed means that something must be written.
	Changed
)

// errRecreate means that the API server does not allow to change what differs, so the object must be recreated.
var errRecreate = errors.New("the object can only be changed by making it again")

// NeedsRecreation reports whether an error of Into means that the object must be deleted and created again.
func NeedsRecreation(err error) bool { return errors.Is(err, errRecreate) }

// merger writes the content of the desired object into next, a copy of the live one.
type merger func(next, desired *unstructured.Unstructured) (Delta, error)

// Into returns the live object with the desired one merged into it, as the strategy Update writes it
// (docs/reference/work.md, "Update").
func Into(live, desired *unstructured.Unstructured, owner metav1.OwnerReference, owned bool,
) (*unstructured.Unstructured, Delta, error) {
	desired = yield(live, desired)
	next := live.DeepCopy()
	next.SetManagedFields(nil)
	changed := Metadata(next, desired, owner, owned)
	content, err := mergerFor(desired.GroupVersionKind())(next, desired)
	if err != nil {
		return nil, Changed, err
	}
	if changed {
		content = Changed
	}
	return next, content, nil
}

// mergerFor returns how the content of a kind is merged.
func mergerFor(gvk schema.GroupVersionKind) merger {
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "ServiceAccount"}:
		return mergeNothing
	case schema.GroupKind{Kind: "ConfigMap"}:
		return mergeConfigMap
	case schema.GroupKind{Kind: "Secret"}:
		return mergeSecret
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}:
		return mergeFields("rules")
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		return mergeClusterRole
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:
		return mergeBinding
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		if gvk.Version == "v1" {
			return mergeDefinition
		}
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:
		return mergeWebhooks
	case schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}:
		return mergeStorageClass
	}
	return replaceContent
}

// mergeNothing is for kinds of which only the metadata is merged.
func mergeNothing(_, _ *unstructured.Unstructured) (Delta, error) { return Equal, nil }

// replaceContent makes the content exactly that of the manifest. The status stays unless the manifest has one.
func replaceContent(next, desired *unstructured.Unstructured) (Delta, error) {
	have, want := content.Of(next), content.Of(desired)
	found := Changed
	switch {
	case content.Same(have, want):
		return Equal, nil
	case content.Resembles(have, want):
		found = Extra
	}
	for key := range have {
		delete(next.Object, key)
	}
	for key, value := range runtime.DeepCopyJSON(want) {
		next.Object[key] = value
	}
	if status, ok := desired.Object["status"]; ok {
		next.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
	return found, nil
}

// mergeFields makes the named top-level fields those of the manifest and leaves the rest.
func mergeFields(fields ...string) merger {
	return func(next, desired *unstructured.Unstructured) (Delta, error) {
		found := Equal
		for _, field := range fields {
			if setField(next, field, desired.Object[field]) {
				found = Changed
			}
		}
		return found, nil
	}
}

// setField sets or, for an empty value, removes a top-level field and reports whether that changed it.
func setField(object *unstructured.Unstructured, field string, want any) bool {
	have := object.Object[field]
	if equality.Semantic.DeepEqual(have, want) || (content.Empty(have) && content.Empty(want)) {
		return false
	}
	if content.Empty(want) {
		delete(object.Object, field)
		return true
	}
	object.Object[field] = runtime.DeepCopyJSONValue(want)
	return true
}

// mergeConfigMap replaces data and binaryData; a bundle of authorities that OpenShift injects on request stays.
func mergeConfigMap(next, desired *unstructured.Unstructured) (Delta, error) {
	data, isMap := desired.Object["data"].(map[string]any)
	if desired.Object["data"] != nil && !isMap {
		return Changed, manifest.Failed("the field data of the ConfigMap is no map of keys and texts")
	}
	want := maps.Clone(data)
	injected := map[string]bool{
		"ca-bundle.crt":  desired.GetLabels()["config.openshift.io/inject-trusted-cabundle"] == "true",
		"service-ca.crt": desired.GetAnnotations()["service.beta.openshift.io/inject-cabundle"] == "true",
	}
	for key, on := range injected {
		have, ok, _ := unstructured.NestedFieldNoCopy(next.Object, "data", key)
		if _, defined := want[key]; !on || !ok || defined {
			continue
		}
		if want == nil {
			want = map[string]any{}
		}
		want[key] = have
	}
	changed := setField(next, "data", want)
	if binary := setField(next, "binaryData", desired.Object["binaryData"]); changed || binary {
		return Changed, nil
	}
	return Equal, nil
}

// mergeSecret replaces data, with stringData folded in; of a service account token it only adds keys. A type cannot be
// changed in place.
func mergeSecret(next, desired *unstructured.Unstructured) (Delta, error) {
	kind, _, _ := unstructured.NestedString(desired.Object, "type")
	if kind == "" {
		kind = "Opaque"
	}
	if have, _, _ := unstructured.NestedString(next.Object, "type"); have != kind {
		return Changed, errRecreate
	}
	want, err := secretData(desired)
	if err != nil {
		return Changed, err
	}
	if kind == "kubernetes.io/service-account-token" {
		have, _, _ := unstructured.NestedMap(next.Object, "data")
		for key, value := range have {
			if _, defined := want[key]; !defined {
				want[key] = value
			}
		}
	}
	if setField(next, "data", want) {
		return Changed, nil
	}
	return Equal, nil
}

// secretData returns the data of a Secret manifest: data and stringData together.
func secretData(desired *unstructured.Unstructured) (map[string]any, error) {
	data, err := manifest.SecretTexts(desired.Object, "data")
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = map[string]any{}
	}
	texts, err := manifest.SecretTexts(desired.Object, "stringData")
	if err != nil {
		return nil, err
	}
	for key, value := range texts {
		text, _ := value.(string)
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		if have, twice := data[key]; twice && have != encoded {
			return nil, manifest.Failed(fmt.Sprintf(
				"the key %q of the Secret is in data and in stringData with different values", key))
		}
		data[key] = encoded
	}
	return data, nil
}

// mergeClusterRole replaces the rules, or the aggregation rule, which makes the cluster fill in the rules.
func mergeClusterRole(next, desired *unstructured.Unstructured) (Delta, error) {
	if !content.Empty(desired.Object["aggregationRule"]) {
		return mergeFields("aggregationRule")(next, desired)
	}
	return mergeFields("aggregationRule", "rules")(next, desired)
}

// mergeBinding replaces subjects and roleRef, both compared with their default API groups. A changed roleRef is refused
// by the API server.
func mergeBinding(next, desired *unstructured.Unstructured) (Delta, error) {
	wanted := desired.DeepCopy()
	for _, object := range []*unstructured.Unstructured{next, wanted} {
		if role, ok := object.Object["roleRef"].(map[string]any); ok && content.Empty(role["apiGroup"]) {
			role["apiGroup"] = "rbac.authorization.k8s.io"
		}
		subjects, _ := object.Object["subjects"].([]any)
		for _, item := range subjects {
			subject, ok := item.(map[string]any)
			if !ok {
				continue
			}
			switch {
			case !content.Empty(subject["apiGroup"]):
			case subject["kind"] == "User" || subject["kind"] == "Group":
				subject["apiGroup"] = "rbac.authorization.k8s.io"
			default:
				delete(subject, "apiGroup")
			}
		}
	}
	return mergeFields("subjects", "roleRef")(next, wanted)
}

// mergeDefinition merges a CustomResourceDefinition as library-go defines it, server defaults included.
func mergeDefinition(next, desired *unstructured.Unstructured) (Delta, error) {
	var have, want apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(next.Object, &have); err != nil {
		return Changed, fmt.Errorf("reading the live CustomResourceDefinition: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, &want); err != nil {
		return Changed, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	want.ObjectMeta = metav1.ObjectMeta{}
	keepConversionBundle(&have, &want)
	modified := false
	resourcemerge.EnsureCustomResourceDefinitionV1(&modified, &have, want)
	if !modified {
		return Equal, nil
	}
	merged, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&have)
	if err != nil {
		return Changed, fmt.Errorf("encoding the CustomResourceDefinition: %w", err)
	}
	next.Object["spec"] = merged["spec"]
	return Changed, nil
}

// keepConversionBundle keeps an injected bundle of authorities that the manifest leaves empty.
func keepConversionBundle(have, want *apiextensionsv1.CustomResourceDefinition) {
	from, to := conversionClient(have), conversionClient(want)
	if from != nil && to != nil && len(to.CABundle) == 0 {
		to.CABundle = from.CABundle
	}
}

// conversionClient is the webhook client of a definition, nil when it has none.
func conversionClient(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// mergeWebhooks replaces the content but keeps, by the name of the webhook, an injected bundle of authorities that the
// manifest leaves empty.
func mergeWebhooks(next, desired *unstructured.Unstructured) (Delta, error) {
	bundles := map[string]any{}
	eachWebhook(next, func(name string, client map[string]any) { bundles[name] = client["caBundle"] })
	wanted := desired.DeepCopy()
	eachWebhook(wanted, func(name string, client map[string]any) {
		if content.Empty(client["caBundle"]) && !content.Empty(bundles[name]) {
			client["caBundle"] = bundles[name]
		}
	})
	return replaceContent(next, wanted)
}

// eachWebhook visits the client configuration of every webhook of a configuration.
func eachWebhook(object *unstructured.Unstructured, visit func(name string, client map[string]any)) {
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		name, _ := webhook["name"].(string)
		if client, ok := webhook["clientConfig"].(map[string]any); ok {
			visit(name, client)
		}
	}
}
