package ssa

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/ignore"
	"github.com/spokelet/spokelet/agent/work/manifest"
)

// annotationHash on an object that is applied with ignoreFields is the hash of the manifest that was applied last,
// without the fields with OnSpokePresent. Each agent has its own algorithm (docs/reference/work.md, "ServerSideApply"
// and "Moving from another agent").
const annotationHash = "open-cluster-management.io/config-spec-hash"

// Configuration holds what a manifest with the strategy ServerSideApply applies.
type Configuration struct {
	// Manager is the field manager, and Force takes fields over from other managers.
	Manager string
	Force   bool
	// Ignores reports whether the manifest has ignoreFields.
	Ignores bool
	// hash digests the manifest without the fields with OnSpokePresent.
	hash string
	// full is applied to an object that does not exist, changed to one that does when the manifest is new to it, and kept
	// to one to which this manifest was applied before: only fields in kept are repaired.
	full, changed, kept map[string]any
}

// Configure builds the Configuration of a manifest. An error is about its ignoreFields.
func Configure(ctx context.Context, desired *unstructured.Unstructured, config *workv1.ServerSideApplyConfig,
) (*Configuration, error) {
	if config == nil {
		config = &workv1.ServerSideApplyConfig{}
	}
	c := &Configuration{Manager: config.FieldManager, Force: config.Force, Ignores: len(config.IgnoreFields) > 0}
	if c.Manager == "" {
		c.Manager = workv1.DefaultFieldManager
	}
	object := desired.DeepCopy()
	dropNullTimestamps(object.Object)
	object.SetResourceVersion("")
	c.full, c.changed, c.kept = object.Object, object.Object, object.Object
	if !c.Ignores {
		return c, foldText(c.full)
	}
	changed, err := ignore.Fields(ctx, c.full, config.IgnoreFields, workv1.IgnoreFieldsConditionOnSpokePresent)
	if err != nil {
		return nil, err
	}
	sum := manifest.DigestOf(changed)
	c.hash = hex.EncodeToString(sum[:])
	kept, err := ignore.Fields(ctx, changed, config.IgnoreFields, workv1.IgnoreFieldsConditionOnSpokeChange)
	if err != nil {
		return nil, err
	}
	c.changed, c.kept = changed, kept
	for _, part := range []map[string]any{c.full, c.changed, c.kept} {
		if err := unstructured.SetNestedField(part, c.hash, "metadata", "annotations", annotationHash); err != nil {
			return nil, fmt.Errorf("annotating the manifest: %w", err)
		}
		if err := foldText(part); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// foldText moves the stringData of a Secret into its data, as the API server does: a change of a field that is never
// stored could not be seen.
func foldText(object map[string]any) error {
	if !manifest.IsSecret(object) {
		return nil
	}
	texts, err := manifest.SecretTexts(object, "stringData")
	if err != nil {
		return err
	}
	data, err := manifest.SecretTexts(object, "data")
	if err != nil || texts == nil {
		return err
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, _ := value.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object["data"] = data
	delete(object, "stringData")
	return nil
}

// applied reports whether this very manifest was applied to a live object. trusted means that this is known from
// elsewhere, which counts when the annotation of the object is that of another agent.
func (c *Configuration) applied(live *unstructured.Unstructured, trusted bool) bool {
	if !c.Ignores {
		return true
	}
	mark := live.GetAnnotations()[annotationHash]
	return mark == c.hash || (trusted && mark != "" && len(mark) != len(c.hash))
}

// Next returns the configuration to apply to a live object, which is nil when it does not exist. An ignored field is
// left out unless only this manager owns it: then it is applied at its live value, because leaving it out would remove
// it, and the request has the resourceVersion, so that it fails if the object has changed.
func (c *Configuration) Next(live *unstructured.Unstructured, trusted bool) *unstructured.Unstructured {
	if live == nil {
		return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.full)}
	}
	base := c.changed
	if c.applied(live, trusted) {
		base = c.kept
	}
	next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(base)}
	if !c.Ignores {
		return next
	}
	o, _ := owned(live, c.Manager)
	if _, exact := retain(live.Object, next.Object, c.full, o); exact {
		next.SetResourceVersion(live.GetResourceVersion())
	}
	return next
}

// InForce reports whether a live object is as the manifest wants and whether the manager owns all fields that it
// should.
func (c *Configuration) InForce(live *unstructured.Unstructured, trusted bool) bool {
	o, applied := owned(live, c.Manager)
	if !applied || !c.applied(live, trusted) {
		return false
	}
	return inForce(live.Object, outline(c.kept, o.mine), outline(c.full, o.mine), o.mine)
}

// outline returns a configuration without the fields that have no owner: those that identify the object and, where it
// is a subresource, the status.
func outline(object map[string]any, mine *fieldpath.Set) map[string]any {
	_, hasStatus := below(mine, fieldpath.FieldNameElement("status"))
	rest := make(map[string]any, len(object))
	for key, value := range object {
		if !content.Outside(key) || (key == "status" && hasStatus) {
			rest[key] = value
		}
	}
	meta, _ := object["metadata"].(map[string]any)
	shown := map[string]any{}
	for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if value, set := meta[key]; set {
			shown[key] = value
		}
	}
	if len(shown) > 0 {
		rest["metadata"] = shown
	}
	return rest
}

// Digest changes when a user changes or takes over any field of a live object that the manifest repairs.
func (c *Configuration) Digest(live *unstructured.Unstructured) manifest.Digest {
	o, applied := owned(live, c.Manager)
	if !applied {
		return manifest.Digest{}
	}
	return manifest.DigestOf(common(live.Object, outline(c.kept, o.mine), o.mine))
}

// dropNullTimestamps removes creationTimestamp: null from every metadata in the value, at any depth: as an applied
// field it would change the object with each request.
func dropNullTimestamps(value any) {
	switch value := value.(type) {
	case map[string]any:
		if meta, ok := value["metadata"].(map[string]any); ok {
			if stamp, set := meta["creationTimestamp"]; set && stamp == nil {
				delete(meta, "creationTimestamp")
			}
		}
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	case []any:
		for _, inner := range value {
			dropNullTimestamps(inner)
		}
	}
}
