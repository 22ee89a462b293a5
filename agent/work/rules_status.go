package work

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// conditionRules is our own condition of a manifest: it is False while some of its condition rules are refused, and
	// not there otherwise. Its reason has the prefix of rules, so that it reaches the work as the other answers do and
	// that another agent clears it away.
	conditionRules = "work.spokelet.io/ConditionRulesValid"
	// rulePrefix is how the reason of every condition starts that comes from a rule.
	rulePrefix = "ConditionRule"
)

// reservedConditions are the conditions of a manifest that the agent itself sets, so that no rule can.
func reservedConditions() []string {
	return []string{workv1.WorkApplied, workv1.WorkAvailable, workv1.WorkDeleting, conditionFeedback, conditionRules}
}

// readsOf identifies all that is read from an object for the hub: the feedback rules and the condition rules. It is
// zero when nothing is, so that changes of the object's status are no news then.
func readsOf(o *option) digest {
	if len(o.feedback) == 0 && len(o.rules) == 0 {
		return digest{}
	}
	return digestOf([]any{o.feedback, o.rules})
}

// readForHub reads what the rules want to know of an object into its record, unless the object is the same as before.
func (a *applier) readForHub(ctx context.Context, t *task, live *unstructured.Unstructured, rec *record) {
	if t.reads == (digest{}) {
		return
	}
	if was := &t.prior; was.reads == t.reads && was.exists && was.uid == rec.uid && was.version == rec.version {
		rec.values, rec.valuesErr, rec.rulings, rec.cost = was.values, was.valuesErr, was.rulings, was.cost
		return
	}
	if len(t.option.feedback) > 0 {
		values, err := a.evaluator.Values(live, t.option.feedback)
		rec.values = values
		if err != nil {
			rec.valuesErr = err.Error()
		}
	}
	rec.rulings, rec.cost = a.evaluator.Conditions(ctx, live, t.option.rules)
}

// pause is how long after its last read an object that only changed its status is not read again: a moment, and as much
// longer as its rules are expensive, so that no rule keeps a processor busy for good.
func (r *record) pause() time.Duration {
	const perCost = 10 * time.Microsecond // evaluating takes about a tenth of it
	return feedbackPause + time.Duration(r.cost)*perCost
}

// concludeRules sets the conditions that come from rules. What could not be read leaves them as they were; an object
// that is gone has none but that it was complete: a Job that is cleared away when it is done stays done.
func concludeRules(state *workv1.ManifestCondition, generation int64, m *manifest, r *result, now time.Time) {
	answered := map[string]bool{conditionRules: true}
	for _, v := range r.rulings {
		answered[v.Condition] = true
	}
	if r.presence == presenceAbsent && completed(state) && m.completable() {
		answered[workv1.ManifestComplete] = true
	}
	if r.presence != presenceUnknown {
		state.Conditions = slices.DeleteFunc(state.Conditions, func(c metav1.Condition) bool {
			return strings.HasPrefix(c.Reason, rulePrefix) && !answered[c.Type]
		})
	}
	for _, v := range r.rulings {
		set(&state.Conditions, metav1.Condition{
			Type: v.Condition, Status: v.Status, ObservedGeneration: generation, Reason: v.Reason, Message: v.Message,
		}, now)
	}
	if len(m.refused) == 0 {
		meta.RemoveStatusCondition(&state.Conditions, conditionRules)
		return
	}
	set(&state.Conditions, metav1.Condition{
		Type: conditionRules, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: workv1.ConditionRuleInvalid, Message: strings.Join(m.refused, "; "),
	}, now)
}

// withinBounds drops the values and shortens the messages for which there is no room any more, each with a word about
// it in its place.
func withinBounds(results []result, room int) []result {
	const (
		entry   = 100 // what a condition takes besides its text
		tooMuch = "the values of this work are too many or too long for its status"
	)
	out := slices.Clone(results)
	for i := range out {
		r := &out[i]
		values, rulings := slices.Clone(r.values), slices.Clone(r.rulings)
		r.values = slices.DeleteFunc(values, func(v workv1.FeedbackValue) bool {
			size := valueSize(v)
			if size > room {
				return true
			}
			room -= size
			return false
		})
		if len(r.values) < len(values) {
			r.valuesErr = strings.TrimPrefix(r.valuesErr+", "+tooMuch, ", ")
		}
		for j := range rulings {
			v := &rulings[j]
			if size := entry + len(v.Condition) + encodedSize(v.Message); size > room {
				v.Message = "the message is left out: " + tooMuch
			} else {
				room -= size
			}
		}
		r.rulings = rulings
	}
	return out
}
