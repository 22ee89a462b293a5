package work

import (
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
)

// option is what spec.manifestConfigs says about one object, merged.
type option struct {
	strategy workv1.UpdateStrategy
	feedback []workv1.FeedbackRule
	rules    []workv1.ConditionRule
}

// optionFor merges the entries that match the object: for each of strategy, feedback rules and condition rules the
// first entry that says anything about it wins (work contract, section 1.4). Without a strategy it is Update.
func optionFor(configs []workv1.ManifestConfigOption, id identity) option {
	var merged option
	var strategy *workv1.UpdateStrategy
	for i := range configs {
		config := &configs[i]
		if !matches(config.ResourceIdentifier, id) {
			continue
		}
		if strategy == nil {
			strategy = config.UpdateStrategy
		}
		if len(merged.feedback) == 0 {
			merged.feedback = config.FeedbackRules
		}
		if len(merged.rules) == 0 {
			merged.rules = config.ConditionRules
		}
	}
	if strategy != nil {
		merged.strategy = *strategy
	}
	if merged.strategy.Type == "" {
		merged.strategy.Type = workv1.UpdateStrategyTypeUpdate
	}
	return merged
}

// matches reports whether a resource identifier of the spec means the object: group and resource exactly, namespace and
// name with stars.
func matches(pattern workv1.ResourceIdentifier, id identity) bool {
	return pattern.Group == id.Group && pattern.Resource == id.Resource &&
		glob(pattern.Namespace, id.Namespace) && glob(pattern.Name, id.Name)
}

// ownedBy reports whether the object belongs to its work, that is, whether it goes when the work goes.
func ownedBy(deletion *workv1.DeleteOption, id identity) bool {
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
		return identity(rule) == id
	})
}
