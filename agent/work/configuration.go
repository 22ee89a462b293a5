package work

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/ignore"
)

// annotationHash on an object that is applied with ignoreFields says of which manifest, without the fields with
// OnSpokePresent, it was applied last. Its algorithm is that of the agent that wrote it (work contract, sections 2.10
// and 9.2).
const annotationHash = "open-cluster-management.io/config-spec-hash"

// configuration is what a manifest with the strategy ServerSideApply wants to be applied.
type configuration struct {
	manager string
	force   bool
	// ignores tells that fields are ignored, hash digests the manifest without those that never count on an object.
	ignores bool
	hash    string
	// full is for an object that does not exist, changed for one that does when the manifest is new to it, and kept for
	// one to which this manifest was applied: only fields in kept are repaired.
	full, changed, kept map[string]any
}

// configurationOf reads the strategy of a manifest. An error is about its ignoreFields.
func configurationOf(ctx context.Context, desired *unstructured.Unstructured, config *workv1.ServerSideApplyConfig,
) (*configuration, error) {
	if config == nil {
		config = &workv1.ServerSideApplyConfig{}
	}
	c := &configuration{manager: config.FieldManager, force: config.Force, ignores: len(config.IgnoreFields) > 0}
	if c.manager == "" {
		c.manager = workv1.DefaultFieldManager
	}
	object := desired.DeepCopy()
	dropNullTimestamps(object.Object)
	object.SetResourceVersion("")
	c.full, c.changed, c.kept = object.Object, object.Object, object.Object
	if !c.ignores {
		return c, foldText(c.full)
	}
	changed, err := ignore.Fields(ctx, c.full, config.IgnoreFields, workv1.IgnoreFieldsConditionOnSpokePresent)
	if err != nil {
		return nil, err
	}
	sum := digestOf(changed)
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

// foldText writes the stringData of a Secret as data, which is how the API server keeps it: what is never kept could
// not be seen to be changed.
func foldText(object map[string]any) error {
	if object["apiVersion"] != "v1" || object["kind"] != "Secret" {
		return nil
	}
	text, set, err := unstructured.NestedStringMap(object, "stringData")
	if err != nil || !set {
		return nil //nolint:nilerr // the API server says what is wrong with it
	}
	for key, value := range text {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		if err := unstructured.SetNestedField(object, encoded, "data", key); err != nil {
			return fmt.Errorf("writing the stringData of the Secret as data: %w", err)
		}
	}
	delete(object, "stringData")
	return nil
}

// applied reports whether the manifest was applied to a live object since it last changed. trusted tells that this is
// known from elsewhere, which counts when the object bears the mark of another agent.
func (c *configuration) applied(live *unstructured.Unstructured, trusted bool) bool {
	if !c.ignores {
		return true
	}
	mark := live.GetAnnotations()[annotationHash]
	return mark == c.hash || (trusted && mark != "" && len(mark) != len(c.hash))
}

// plan returns what to apply to a live object, nil when it does not exist. A field that is ignored is left out unless
// only this manager holds it: then it is applied as it is, for to give it up would remove it, and the request is to
// fail when the object changed meanwhile.
func (c *configuration) plan(live *unstructured.Unstructured, trusted bool) *unstructured.Unstructured {
	if live == nil {
		return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.full)}
	}
	base := c.changed
	if c.applied(live, trusted) {
		base = c.kept
	}
	next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(base)}
	if !c.ignores {
		return next
	}
	mine, others := managers(live, c.manager)
	if _, exact := retain(live.Object, next.Object, c.full, mine, others); exact {
		next.SetResourceVersion(live.GetResourceVersion())
	}
	return next
}

// inForce reports whether a live object is as the manifest wants and whether the manager holds all that it should.
func (c *configuration) inForce(live *unstructured.Unstructured, trusted bool) bool {
	mine, _ := managers(live, c.manager)
	if mine == nil || !c.applied(live, trusted) {
		return false
	}
	return inForce(live.Object, outline(c.kept, mine), outline(c.full, mine), mine)
}

// outline is a configuration without what the API server holds for nobody: who the object is, and, where it is a
// resource of its own, the status.
func outline(object map[string]any, mine fieldSet) map[string]any {
	rest := make(map[string]any, len(object))
	for key, value := range object {
		if !outsideContent(key) || (key == "status" && mine["f:status"] != nil) {
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

// digest changes when somebody changes or takes over anything of a live object that the manifest wants to keep.
func (c *configuration) digest(live *unstructured.Unstructured) digest {
	mine, _ := managers(live, c.manager)
	if mine == nil {
		return digest{}
	}
	return digestOf(held(live.Object, outline(c.kept, mine), mine))
}
