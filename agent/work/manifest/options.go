package manifest

import (
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Options are the parts of the spec of a work, besides the manifest, that concern one object.
type Options struct {
	// Strategy is the update strategy; its type is never empty.
	Strategy workv1.UpdateStrategy
	// Feedback are the feedback rules.
	Feedback []workv1.FeedbackRule
	// Rules are the condition rules that can be evaluated, and RefusedRules the reasons why the others cannot.
	Rules        []workv1.ConditionRule
	RefusedRules []string
	// Owned reports whether the object belongs to the work, so that it is deleted with it.
	Owned bool
}

// Completable reports whether a condition rule may find the manifest complete.
func (o *Options) Completable() bool {
	return slices.ContainsFunc(o.Rules, func(rule workv1.ConditionRule) bool {
		return rule.Condition == workv1.ManifestComplete
	})
}

// optionsFor merges the entries of spec.manifestConfigs that match the object: for each of strategy, feedback rules and
// condition rules the first entry that sets it wins (docs/reference/work.md, "Manifest options"). The default strategy
// is Update.
func optionsFor(configs []workv1.ManifestConfigOption, id ID) Options {
	var merged Options
	var strategy *workv1.UpdateStrategy
	for i := range configs {
		config := &configs[i]
		if !matches(config.ResourceIdentifier, id) {
			continue
		}
		if strategy == nil {
			strategy = config.UpdateStrategy
		}
		if len(merged.Feedback) == 0 {
			merged.Feedback = config.FeedbackRules
		}
		if len(merged.Rules) == 0 {
			merged.Rules = config.ConditionRules
		}
	}
	if strategy != nil {
		merged.Strategy = *strategy
	}
	if merged.Strategy.Type == "" {
		merged.Strategy.Type = workv1.UpdateStrategyTypeUpdate
	}
	return merged
}

// matches reports whether a resource identifier of the spec means the object: group and resource exactly, namespace and
// name with stars.
func matches(pattern workv1.ResourceIdentifier, id ID) bool {
	return pattern.Group == id.Group && pattern.Resource == id.Resource &&
		glob(pattern.Namespace, id.Namespace) && glob(pattern.Name, id.Name)
}

// Owned reports whether an object belongs to a work with the delete option, so that it is deleted with the work.
func Owned(deletion *workv1.DeleteOption, id ID) bool {
	if deletion == nil || deletion.PropagationPolicy == workv1.DeletePropagationPolicyTypeForeground {
		return true
	}
	if deletion.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan {
		return false
	}
	if deletion.SelectivelyOrphan == nil {
		return true
	}
	return !slices.ContainsFunc(deletion.SelectivelyOrphan.OrphaningRules, func(rule workv1.OrphaningRule) bool {
		return ID(rule) == id
	})
}
