package status

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// minWhole is the least size of a status, in bytes, that is sent as a patch: a smaller one costs a link little, and
	// the API server less than a patch.
	minWhole = 8 << 10
	// minGain is how many times smaller than the whole a part must be that is sent alone.
	minGain = 4
)

// operation is one operation of a JSON patch. A merge patch would have all manifests again, which are a list.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Patch returns the JSON patch from the status of a work to another one that is large: what changed where that is much
// less, else the whole. It is nil for a status that is not large. The patch fits only the version of the work that it
// was made for.
func Patch(work *workv1.ManifestWork, after *workv1.ManifestWorkStatus) ([]byte, error) {
	if len(after.ResourceStatus.Manifests) < minGain {
		return nil, nil // no patch is an answer here
	}
	whole, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of a work: %w", err)
	}
	if len(whole) < minWhole {
		return nil, nil // likewise
	}
	guard := []operation{
		{"replace", "/metadata/uid", work.UID}, {"replace", "/metadata/resourceVersion", work.ResourceVersion},
	}
	if part := difference(&work.Status, after); part != nil {
		patch, err := encode(append(guard, part...))
		if err != nil || len(patch)*minGain <= len(whole) {
			return patch, err
		}
	}
	return encode(append(guard, operation{"add", "/status", json.RawMessage(whole)}))
}

// encode returns a JSON patch.
func encode(patch []operation) ([]byte, error) {
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of the status of a work: %w", err)
	}
	return encoded, nil
}

// difference returns the operations that turn a status into another one of the same manifests; nil where a quarter of
// these changed, or where it is another one in other ways.
func difference(before, after *workv1.ManifestWorkStatus) []operation {
	was, is := before.ResourceStatus.Manifests, after.ResourceStatus.Manifests
	if len(was) != len(is) || len(before.Conditions) == 0 || len(after.Conditions) == 0 {
		return nil
	}
	operations := []operation{{"replace", "/status/conditions", after.Conditions}}
	for i := range is {
		if !equality.Semantic.DeepEqual(was[i], is[i]) {
			path := fmt.Sprintf("/status/resourceStatus/manifests/%d", i)
			operations = append(operations, operation{"replace", path, is[i]})
		}
	}
	if len(operations)*minGain > len(is)+minGain {
		return nil
	}
	return operations
}

// Former finds the status of a manifest in an earlier status.
type Former struct {
	exact map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
	loose map[workv1.ManifestResourceMeta][]*workv1.ManifestCondition
}

// Index indexes the manifests of a status.
func Index(list []workv1.ManifestCondition) Former {
	f := Former{
		exact: make(map[workv1.ManifestResourceMeta]*workv1.ManifestCondition, len(list)),
		loose: make(map[workv1.ManifestResourceMeta][]*workv1.ManifestCondition, len(list)),
	}
	for i := range list {
		f.exact[list[i].ResourceMeta] = &list[i]
		key := withoutOrdinal(list[i].ResourceMeta)
		f.loose[key] = append(f.loose[key], &list[i])
	}
	return f
}

// Find returns the earlier status by the whole meta, else by all of it but the ordinal if that is unique, else nil.
func (f Former) Find(m workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	if exact := f.exact[m]; exact != nil {
		return exact
	}
	if loose := f.loose[withoutOrdinal(m)]; len(loose) == 1 {
		return loose[0]
	}
	return nil
}

// withoutOrdinal is the meta without its place in the list.
func withoutOrdinal(m workv1.ManifestResourceMeta) workv1.ManifestResourceMeta {
	m.Ordinal = 0
	return m
}
