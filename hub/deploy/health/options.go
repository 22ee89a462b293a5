package health

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// Options returns the feedback rules that a probe needs, by object, with those of the author for the same objects. An
// object that its author switched off, with zero replicas, needs none. A field with wildcards becomes one option for
// each object that it selects, because of several options with feedback rules for an object, a cluster uses the first.
func Options(setup addon.Setup, rendering addon.Rendering) []workv1.ManifestConfigOption {
	options := workloadOptions(setup.Health, rendering.Objects)
	if setup.Health == addon.HealthWork {
		options = fieldOptions(setup.WorkProbe, rendering.Objects)
	}
	for i := range options {
		for _, own := range rendering.ManifestConfigs {
			if len(own.FeedbackRules) == 0 || !matches(own.ResourceIdentifier, options[i].ResourceIdentifier) {
				continue
			}
			for _, rule := range own.FeedbackRules {
				options[i].FeedbackRules = mergeRule(options[i].FeedbackRules, *rule.DeepCopy())
			}
			break
		}
	}
	return options
}

// workloadOptions returns the feedback rules of the workloads that a probe judges.
func workloadOptions(probe addon.HealthProbe, objects []*unstructured.Unstructured) []workv1.ManifestConfigOption {
	var options []workv1.ManifestConfigOption
	for _, object := range objects {
		kind := object.GroupVersionKind()
		o := Object{
			Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), Replicas: -1,
		}
		if replicas, stated, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); stated {
			o.Replicas = replicas
		}
		if w, judged := workloadOf(probe, o); judged {
			options = append(options, workv1.ManifestConfigOption{ResourceIdentifier: o.id(w), FeedbackRules: w.rules()})
		}
	}
	return options
}

// Judges reports whether a probe judges an object.
func Judges(probe addon.HealthProbe, o Object) bool {
	_, judged := workloadOf(probe, o)
	return judged
}

// Asks reports whether a work asks for the values by which a probe judges an object. Those that only show a rollout do
// not count.
func Asks(probe addon.HealthProbe, o Object, work *workv1.ManifestWork) bool {
	w, judged := workloadOf(probe, o)
	if !judged {
		return false
	}
	return slices.ContainsFunc(work.Spec.ManifestConfigs, func(option workv1.ManifestConfigOption) bool {
		return option.ResourceIdentifier == o.id(w) && !slices.ContainsFunc(w.needs(), func(need workv1.FeedbackRule) bool {
			return !slices.ContainsFunc(option.FeedbackRules, func(rule workv1.FeedbackRule) bool {
				return rule.Type == need.Type && containsPaths(rule.JsonPaths, need.JsonPaths)
			})
		})
	})
}

func containsPaths(have, need []workv1.JsonPath) bool {
	return !slices.ContainsFunc(need, func(path workv1.JsonPath) bool { return !slices.Contains(have, path) })
}

// fieldOptions returns the feedback rules of the probe of an author.
func fieldOptions(probe *addon.WorkProbe, objects []*unstructured.Unstructured) []workv1.ManifestConfigOption {
	if probe == nil {
		return nil
	}
	var options []workv1.ManifestConfigOption
	add := func(id workv1.ResourceIdentifier, rules []workv1.FeedbackRule) {
		at := slices.IndexFunc(options, func(o workv1.ManifestConfigOption) bool { return o.ResourceIdentifier == id })
		if at < 0 {
			at = len(options)
			options = append(options, workv1.ManifestConfigOption{ResourceIdentifier: id})
		}
		for i := range rules {
			options[at].FeedbackRules = mergeRule(options[at].FeedbackRules, *rules[i].DeepCopy())
		}
	}
	for _, field := range probe.Fields {
		found := false
		for _, object := range objects {
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			id := workv1.ResourceIdentifier{
				Group: resource.Group, Resource: resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
			}
			if matches(field.ResourceIdentifier, id) {
				found = true
				add(id, field.FeedbackRules)
			}
		}
		if !found { // The plural of its kind may be an unusual one.
			add(field.ResourceIdentifier, field.FeedbackRules)
		}
	}
	return options
}

// mergeRule adds a rule to the rules of one object: one rule of a type, and a value of each name.
func mergeRule(rules []workv1.FeedbackRule, rule workv1.FeedbackRule) []workv1.FeedbackRule {
	at := slices.IndexFunc(rules, func(other workv1.FeedbackRule) bool { return other.Type == rule.Type })
	if at < 0 {
		return append(rules, rule)
	}
	for _, path := range rule.JsonPaths {
		if !slices.ContainsFunc(rules[at].JsonPaths, func(o workv1.JsonPath) bool { return o.Name == path.Name }) {
			rules[at].JsonPaths = append(rules[at].JsonPaths, path)
		}
	}
	return rules
}

// matches reports whether a field of a probe selects an object.
func matches(field, id workv1.ResourceIdentifier) bool {
	return field.Group == id.Group && field.Resource == id.Resource &&
		like(field.Namespace, id.Namespace) && like(field.Name, id.Name)
}

// like reports whether a name matches a pattern in which "*" stands for any text. Names of objects have no slash.
func like(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return pattern == name || (err == nil && matched)
}
