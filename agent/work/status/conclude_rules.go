package status

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

const (
	// conditionRules is a condition of a manifest that is False while some of its condition rules are refused, and absent
	// otherwise. Its reason has the prefix of rules, so that the work gets it like the results of rules, and another
	// agent removes it. It is Spokelet's own addition.
	conditionRules = "work.spokelet.io/ConditionRulesValid"
	// rulePrefix is the beginning of the reason of every condition that comes from a rule.
	rulePrefix = "ConditionRule"
)

// Reserved returns the conditions of a manifest that the agent itself sets, so that no rule may set them.
func Reserved() []string {
	return []string{workv1.WorkApplied, workv1.WorkAvailable, workv1.WorkDeleting, conditionFeedback, conditionRules}
}

// concludeRules sets the conditions that come from rules. Conditions of an object that could not be read stay as they
// were; an object that is gone has none but that it was complete, so that a finished Job that was removed stays done.
func concludeRules(at stamp, state *workv1.ManifestCondition, m *manifest.Manifest, o *Object) {
	var results []metav1.Condition
	if o.Feedback != nil {
		results = o.Feedback.Conditions
	}
	kept := map[string]bool{conditionRules: true}
	for i := range results {
		kept[results[i].Type] = true
	}
	if o.Presence == manifest.Absent && Completed(state) && m.Options.Completable() {
		kept[workv1.ManifestComplete] = true
	}
	if o.Presence != manifest.Unknown {
		state.Conditions = slices.DeleteFunc(state.Conditions, func(c metav1.Condition) bool {
			return strings.HasPrefix(c.Reason, rulePrefix) && !kept[c.Type]
		})
	}
	for _, c := range results {
		at.set(&state.Conditions, c)
	}
	if len(m.Options.RefusedRules) == 0 {
		meta.RemoveStatusCondition(&state.Conditions, conditionRules)
		return
	}
	at.set(&state.Conditions, metav1.Condition{
		Type: conditionRules, Status: metav1.ConditionFalse,
		Reason: workv1.ConditionRuleInvalid, Message: strings.Join(m.Options.RefusedRules, "; "),
	})
}

// Frozen reports whether a manifest must not be applied any more: because a rule found it complete, for applying it
// would run a finished Job again, or because its work is complete. A new generation of a work still reaches the
// manifests that are not complete themselves.
func Frozen(work *workv1.ManifestWork, m *manifest.Manifest, status *workv1.ManifestCondition) bool {
	if Completed(status) && m.Options.Completable() {
		return true
	}
	complete := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkComplete)
	return complete != nil && complete.Status == metav1.ConditionTrue && strings.HasPrefix(complete.Reason, rulePrefix) &&
		complete.ObservedGeneration == work.Generation && AppliedAt(status, work.Generation)
}

// Completed reports whether a condition rule once found a manifest complete, whichever agent evaluated it.
func Completed(state *workv1.ManifestCondition) bool {
	if state == nil {
		return false
	}
	complete := meta.FindStatusCondition(state.Conditions, workv1.ManifestComplete)
	return complete != nil && complete.Status == metav1.ConditionTrue && strings.HasPrefix(complete.Reason, rulePrefix)
}

// AppliedAt reports whether the status of a manifest is that it was applied in a generation.
func AppliedAt(status *workv1.ManifestCondition, generation int64) bool {
	if status == nil {
		return false
	}
	applied := meta.FindStatusCondition(status.Conditions, workv1.ManifestApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == generation
}

// WithCompletions returns a status with the completions of another status of the same work that it lacks, and whether
// there were any. Of a manifest that the status does not have at all, as after a restore of the hub, it gets all that
// the other one says: a manifest of a complete work is not applied again only where it was applied.
func WithCompletions(work *workv1.ManifestWork, manifests []manifest.Manifest, other *workv1.ManifestWorkStatus,
	now time.Time,
) (workv1.ManifestWorkStatus, bool) {
	complete := meta.FindStatusCondition(other.Conditions, workv1.WorkComplete)
	done := complete != nil && complete.Status == metav1.ConditionTrue && complete.ObservedGeneration == work.Generation
	isComplete := func(m workv1.ManifestCondition) bool { return Completed(&m) }
	if !done && !slices.ContainsFunc(other.ResourceStatus.Manifests, isComplete) {
		return work.Status, false // nearly all works: each pass asks
	}
	status := *work.Status.DeepCopy()
	more := false
	before, has := Index(other.ResourceStatus.Manifests), Index(work.Status.ResourceStatus.Manifests)
	for i := range status.ResourceStatus.Manifests {
		m := &status.ResourceStatus.Manifests[i]
		if was := before.Find(m.ResourceMeta); Completed(was) && !Completed(m) {
			set(&m.Conditions, *meta.FindStatusCondition(was.Conditions, workv1.ManifestComplete), now)
			more = true
		}
	}
	if done && !meta.IsStatusConditionTrue(status.Conditions, workv1.WorkComplete) {
		set(&status.Conditions, *complete, now)
		more = true
	}
	for i := range manifests {
		m := manifests[i].Meta()
		if was := before.Find(m); was != nil && (done || Completed(was)) && has.Find(m) == nil {
			told := was.DeepCopy()
			told.ResourceMeta = m
			status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, *told)
			more = true
		}
	}
	return status, more
}
