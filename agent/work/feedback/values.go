package feedback

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/jsonpath"
	"github.com/spokelet/spokelet/internal/kept"
)

// wellKnown is one value of the well-known status of a kind.
type wellKnown struct{ name, path string }

// wellKnownStatus returns the values of the well-known status of a kind (docs/reference/work.md, "Status feedback").
func wellKnownStatus(gvk schema.GroupVersionKind) ([]wellKnown, bool) {
	switch gvk {
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}:
		return []wellKnown{
			{"ReadyReplicas", ".status.readyReplicas"},
			{"Replicas", ".status.replicas"},
			{"AvailableReplicas", ".status.availableReplicas"},
		}, true
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}:
		return []wellKnown{
			{"NumberReady", ".status.numberReady"},
			{"DesiredNumberScheduled", ".status.desiredNumberScheduled"},
			{"NumberAvailable", ".status.numberAvailable"},
		}, true
	case schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		return []wellKnown{
			{"JobComplete", `.status.conditions[?(@.type=="Complete")].status`},
			{"JobSucceeded", ".status.succeeded"},
		}, true
	case schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		return []wellKnown{
			{"PodReady", `.status.conditions[?(@.type=="Ready")].status`},
			{"PodPhase", ".status.phase"},
		}, true
	}
	return nil, false
}

// DefaultMaxRawLength is the default limit of the length of a raw JSON value, in bytes.
const DefaultMaxRawLength = 1024

// maxRawCharacters is the longest raw JSON value that the API takes, in characters.
const maxRawCharacters = 1024

// Evaluator evaluates the feedback rules and the condition rules of manifests. Several passes may use it at a time.
type Evaluator struct {
	raw    bool
	maxRaw int
	cel    celEvaluator

	paths kept.Texts[parsedPath]
}

// parsedPath is a JSON path, or why it cannot be parsed.
type parsedPath struct {
	path jsonpath.Path
	err  error
}

const (
	// maxPathText is how many bytes of text of parsed JSON paths are kept, where each path counts perPath more.
	maxPathText = 32 << 10
	perPath     = maxPathText / 256
)

// parsed returns a parsed JSON path.
func (e *Evaluator) parsed(path string) (jsonpath.Path, error) {
	one := e.paths.Of(path, maxPathText, func() (parsedPath, int) {
		parsed, err := jsonpath.Parse(path)
		return parsedPath{parsed, err}, perPath + len(path)
	})
	return one.path, one.err
}

// New returns an evaluator. With raw (gate RawFeedbackJsonString), lists, maps, fractions and several results become
// raw JSON of up to maxRaw bytes. Without raw, the first of several results is the value, and lists, maps and fractions
// are errors.
func New(raw bool, maxRaw int) *Evaluator {
	return &Evaluator{raw: raw, maxRaw: maxRaw, cel: newCEL()}
}

// Values evaluates the feedback rules on an object. It returns the values that it could read, and an error about the
// others. A second value of the same name is an error: the API takes each name once and would refuse the whole status.
// The feedbackScrapeType of a rule has no effect, because every object is watched.
func (e *Evaluator) Values(object *unstructured.Unstructured, rules []workv1.FeedbackRule,
) ([]workv1.FeedbackValue, error) {
	var values []workv1.FeedbackValue
	var errs []error
	seen := map[string]bool{}
	budget := jsonpath.NewBudget()
	add := func(name, path string) {
		value, err := e.value(object, path, budget)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("value %q: %w", name, err))
		case value == nil:
		case seen[name]:
			errs = append(errs, fmt.Errorf("value %q: another rule gives a value of this name already", name))
		default:
			seen[name] = true
			values = append(values, workv1.FeedbackValue{Name: name, Value: *value})
		}
	}
	gvk := object.GroupVersionKind()
	for _, rule := range rules {
		switch rule.Type {
		case workv1.WellKnownStatusType:
			known, ok := wellKnownStatus(gvk)
			if !ok {
				errs = append(errs, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", gvk))
			}
			if isUncounted(object) {
				known = nil
			}
			for _, value := range known {
				add(value.name, value.path)
			}
		case workv1.JSONPathsType:
			for _, path := range rule.JsonPaths {
				if path.Version != "" && path.Version != gvk.Version {
					errs = append(errs, fmt.Errorf("value %q: the rule wants version %s, but the manifest has %s",
						path.Name, path.Version, gvk.Version))
					continue
				}
				add(path.Name, path.Path)
			}
		default:
			errs = append(errs, fmt.Errorf("the feedback rule has the unknown type %q", rule.Type))
		}
	}
	return values, utilerrors.NewAggregate(errs)
}

// isUncounted reports whether nobody has counted the pods of a DaemonSet yet. The API server writes 0 for all their
// numbers until then, which would look as if it wanted no pods and had them; other kinds have no numbers.
func isUncounted(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "DaemonSet"}) {
		return false
	}
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	desired, _, _ := unstructured.NestedInt64(object.Object, "status", "desiredNumberScheduled")
	return observed == 0 && desired == 0
}

// value reads one value; nil if the object has none at the path.
func (e *Evaluator) value(object *unstructured.Unstructured, path string, budget *jsonpath.Budget,
) (*workv1.FieldValue, error) {
	parsed, err := e.parsed(path)
	if err != nil {
		return nil, err
	}
	found, err := parsed.Find(object.Object, budget)
	switch {
	case err != nil || len(found) == 0:
		return nil, err
	case e.raw && len(found) > 1:
		return e.rawList(found)
	}
	switch found := found[0].(type) {
	case nil:
		return nil, nil // absence is a valid result
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &found}, nil
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &found}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &found}, nil
	}
	if e.raw {
		return e.rawValue(found[0])
	}
	return nil, fmt.Errorf("the path %s gives %s, not an integer, string or boolean",
		jsonpath.Quote(path), jsonpath.Describe(found[0]))
}

// rawValue returns a value as compact JSON with sorted keys.
func (e *Evaluator) rawValue(found any) (*workv1.FieldValue, error) {
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", jsonpath.Describe(found), err)
	}
	return e.rawText(string(text))
}

// rawList returns several values as a compact JSON list with sorted keys. Each of them may be most of the object, so it
// stops to encode them at the limit.
func (e *Evaluator) rawList(found []any) (*workv1.FieldValue, error) {
	limit := min(e.maxRaw, utf8.UTFMax*maxRawCharacters)
	var list strings.Builder
	list.WriteByte('[')
	for i, value := range found {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", jsonpath.Describe(value), err)
		}
		if i > 0 {
			list.WriteByte(',')
		}
		list.Write(text)
		if list.Len() > limit {
			return nil, fmt.Errorf("the raw JSON of %d values has more bytes than the limit of %d", len(found), limit)
		}
	}
	list.WriteByte(']')
	return e.rawText(list.String())
}

// rawText returns raw JSON as a value, unless it is too long.
func (e *Evaluator) rawText(raw string) (*workv1.FieldValue, error) {
	switch {
	case len(raw) > e.maxRaw:
		return nil, fmt.Errorf("the raw JSON has %d bytes, more than the limit of %d", len(raw), e.maxRaw)
	case utf8.RuneCountInString(raw) > maxRawCharacters:
		return nil, fmt.Errorf("the raw JSON has %d characters, more than the %d that the API takes",
			utf8.RuneCountInString(raw), maxRawCharacters)
	}
	return &workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: &raw}, nil
}
