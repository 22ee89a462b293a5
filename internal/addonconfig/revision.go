package addonconfig

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// Chosen is one configuration with one content, which its hash identifies.
type Chosen struct {
	addonv1beta1.ConfigGroupResource
	addonv1beta1.ConfigSpecHash
}

// Config returns the configuration without its content.
func (c Chosen) Config() addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{ConfigGroupResource: c.ConfigGroupResource, ConfigReferent: c.ConfigReferent}
}

// key identifies a configuration with its content.
func (c Chosen) key() string {
	return confighash.Key(c.ConfigGroupResource, c.ConfigReferent) + "@" + c.SpecHash
}

// revisionName returns the name of the ControllerRevision that keeps a content for an add-on.
func revisionName(addOn string, c Chosen) string {
	return addOn + "-" + digest(c.key(), 16)
}

// newRevision returns the ControllerRevision that keeps a content, the first one of an add-on.
func newRevision(home, addOn string, c Chosen, object *unstructured.Unstructured) (*appsv1.ControllerRevision, error) {
	content := &unstructured.Unstructured{Object: make(map[string]any, len(object.Object))}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" {
			content.Object[key] = value
		}
	}
	content.SetName(object.GetName())
	content.SetNamespace(object.GetNamespace())
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	content.SetAnnotations(annotations)
	raw, err := confighash.Encode(content)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", Describe(c.Config()), err)
	}
	identity, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the identity of %s: %w", Describe(c.Config()), err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: revisionName(addOn, c),
			Labels:      map[string]string{names.LabelAddonName: addOn, names.LabelConfigRevision: "true"},
			Annotations: map[string]string{names.AnnotationConfigKey: string(identity)},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: 1,
	}, nil
}

// AddOnOf returns the add-on that a ControllerRevision keeps a content for; "" when it keeps none.
func AddOnOf(revision client.Object) string { return revision.GetLabels()[names.LabelAddonName] }

// KeptBy returns the configuration whose content a ControllerRevision keeps, by what it says of itself.
func KeptBy(revision client.Object) (Chosen, error) {
	var c Chosen
	if err := json.Unmarshal([]byte(revision.GetAnnotations()[names.AnnotationConfigKey]), &c); err != nil {
		return Chosen{}, fmt.Errorf("reading annotation %s of ControllerRevision %s/%s: %w", names.AnnotationConfigKey,
			revision.GetNamespace(), revision.GetName(), err)
	}
	return c, nil
}

// readRevision returns the content of a ControllerRevision, packed or not.
func readRevision(revision *appsv1.ControllerRevision, packed bool) (*unstructured.Unstructured, error) {
	decode := func(raw []byte) (*unstructured.Unstructured, error) {
		content := &unstructured.Unstructured{}
		return content, content.UnmarshalJSON(raw)
	}
	if packed {
		decode = confighash.PackJSON
	}
	content, err := decode(revision.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("decoding ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return content, nil
}

// Obsolete returns the revisions of an add-on that nothing refers to. Thousands of add-ons refer to the same few: no
// more references are read than are needed to know.
func Obsolete(
	addOn string, revisions []*appsv1.ControllerRevision, referred iter.Seq[Chosen],
) []*appsv1.ControllerRevision {
	left := make(map[string]bool, len(revisions))
	for _, revision := range revisions {
		left[revision.Name] = true
	}
	seen := map[Chosen]bool{}
	for c := range referred {
		if len(left) == 0 {
			return nil
		}
		if !seen[c] {
			seen[c] = true
			delete(left, revisionName(addOn, c))
		}
	}
	return slices.DeleteFunc(slices.Clone(revisions), func(r *appsv1.ControllerRevision) bool { return !left[r.Name] })
}
