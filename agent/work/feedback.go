package work

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
)

// wellKnown is one value of the well-known status of a kind.
type wellKnown struct{ name, path string }

// wellKnownStatus returns the values that make up the well-known status of a kind (work contract, section 1.5).
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

// paths compiles JSON paths once. It is safe for several passes at a time.
type paths struct {
	mu       sync.Mutex
	compiled map[string]*jsonpath.JSONPath
}

// maxPaths bounds what paths remembers; a spec that changes forever must not fill the memory.
const maxPaths = 1024

// find returns the first result of a path in an object, and false when there is none.
func (p *paths) find(path string, object map[string]any) (any, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	compiled := p.compiled[path]
	if compiled == nil {
		compiled = jsonpath.New("feedback").AllowMissingKeys(true)
		if err := compiled.Parse("{" + path + "}"); err != nil {
			return nil, false, fmt.Errorf("the JSON path %q cannot be parsed: %w", path, err)
		}
		if p.compiled == nil || len(p.compiled) >= maxPaths {
			p.compiled = map[string]*jsonpath.JSONPath{}
		}
		p.compiled[path] = compiled
	}
	results, err := compiled.FindResults(object)
	if err != nil {
		return nil, false, fmt.Errorf("the JSON path %q cannot be evaluated: %w", path, err)
	}
	if len(results) == 0 || len(results[0]) == 0 || !results[0][0].IsValid() || !results[0][0].CanInterface() {
		return nil, false, nil
	}
	value := results[0][0].Interface()
	return value, value != nil, nil
}

// readFeedback evaluates the feedback rules on a live object. Values that could be read are returned along with the
// error about those that could not.
func (p *paths) readFeedback(object *unstructured.Unstructured, rules []workv1.FeedbackRule,
) ([]workv1.FeedbackValue, error) {
	var values []workv1.FeedbackValue
	var errs []error
	seen := map[string]bool{}
	add := func(name, path string) {
		value, err := p.value(object, path)
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
	for _, rule := range rules {
		switch rule.Type {
		case workv1.WellKnownStatusType:
			gvk := object.GroupVersionKind()
			known, ok := wellKnownStatus(gvk)
			if !ok {
				errs = append(errs, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", gvk))
			}
			for _, value := range known {
				add(value.name, value.path)
			}
		case workv1.JSONPathsType:
			for _, path := range rule.JsonPaths {
				if version := object.GroupVersionKind().Version; path.Version != "" && path.Version != version {
					errs = append(errs, fmt.Errorf("value %q: the rule wants version %s, but the manifest has %s",
						path.Name, path.Version, version))
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

// value reads one value; nil when the object has none there.
func (p *paths) value(object *unstructured.Unstructured, path string) (*workv1.FieldValue, error) {
	found, ok, err := p.find(path, object.Object)
	if err != nil || !ok {
		return nil, err
	}
	switch found := found.(type) {
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &found}, nil
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &found}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &found}, nil
	}
	return nil, fmt.Errorf("the path %q gives %s, not an integer, string or boolean", path, shapeOf(found))
}

// shapeOf names the kind of a JSON value for a person.
func shapeOf(value any) string {
	switch value.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case float64:
		return "a number with a fraction"
	}
	return fmt.Sprintf("a %T", value)
}
