package work

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Condition type, reasons and messages of the work contract, section 3, that the API module does not name.
const (
	conditionFeedback = "StatusFeedbackSynced"

	reasonWorkApplied     = "AppliedManifestWorkComplete"
	reasonWorkFailed      = "AppliedManifestWorkFailed"
	reasonAvailable       = "ResourceAvailable"
	reasonNotAvailable    = "ResourceNotAvailable"
	reasonFetchFailed     = "FetchingResourceFailed"
	reasonIncomplete      = "IncompleteResourceMeta"
	reasonAllAvailable    = "ResourcesAvailable"
	reasonSomeMissing     = "ResourcesNotAvailable"
	reasonSomeUnknown     = "ResourcesStatusUnknown"
	reasonNoFeedback      = "NoStatusFeedbackSynced"
	reasonFeedback        = "StatusFeedbackSynced"
	reasonFeedbackFailed  = "StatusFeedbackSyncFailed"
	reasonRulesAggregated = "ConditionRulesAggregated"
	reasonDeleting        = "WorkDeleting"

	deletingText = "ManifestWork is being deleted"
	failedText   = "Failed to apply manifest work"
)

// maxMessage is the longest message that the API takes, in bytes.
const maxMessage = 32768

// conclude computes the whole status of a work from what became of its manifests.
func conclude(work *workv1.ManifestWork, manifests []manifest, results []result, now time.Time,
) workv1.ManifestWorkStatus {
	status := workv1.ManifestWorkStatus{Conditions: slices.Clone(work.Status.Conditions)}
	room := roomFor(work)
	results = withinBounds(results, valuesShare(room))
	former := formerConditions(work.Status.ResourceStatus.Manifests)
	for i := range manifests {
		before := former.of(manifests[i].meta())
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests,
			concludeManifest(work.Generation, &manifests[i], &results[i], before, now))
	}
	concludeWork(&status, work.Generation, now)
	fitMessages(&status, room)
	return status
}

// former finds the status of a manifest in an earlier pass.
type former struct {
	exact map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
	loose map[workv1.ManifestResourceMeta][]*workv1.ManifestCondition
}

// formerConditions indexes the manifests of a status.
func formerConditions(list []workv1.ManifestCondition) former {
	f := former{
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

// of returns the earlier status by the whole meta, else by all of it but the ordinal if that is unique, else nil.
func (f former) of(m workv1.ManifestResourceMeta) *workv1.ManifestCondition {
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

// concludeManifest computes the status of one manifest; before is its status of an earlier pass or nil.
func concludeManifest(generation int64, m *manifest, r *result, before *workv1.ManifestCondition, now time.Time,
) workv1.ManifestCondition {
	state := workv1.ManifestCondition{ResourceMeta: m.meta()}
	if before != nil {
		state.Conditions = slices.Clone(before.Conditions)
		state.StatusFeedbacks = before.StatusFeedbacks
	}
	applied := appliedCondition(r, generation)
	if r.behind && appliedBefore(&state) {
		// What is in force is the manifest of an earlier generation, and so the condition stays as it was then.
		applied = *meta.FindStatusCondition(state.Conditions, workv1.ManifestApplied)
	}
	if have := meta.FindStatusCondition(state.Conditions, applied.Type); have != nil &&
		have.ObservedGeneration != applied.ObservedGeneration {
		meta.RemoveStatusCondition(&state.Conditions, applied.Type)
	}
	set(&state.Conditions, applied, now)
	set(&state.Conditions, availableCondition(m, r), now)
	concludeFeedback(&state, m, r, now)
	concludeRules(&state, generation, m, r, now)
	return state
}

// appliedCondition says whether a manifest is applied.
func appliedCondition(r *result, generation int64) metav1.Condition {
	applied := metav1.Condition{
		Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1.AppliedManifestComplete, Message: "Apply manifest complete",
	}
	if r.err != nil {
		applied.Status = metav1.ConditionFalse
		applied.Reason, applied.Message = appliedFailure(r.err)
	}
	return applied
}

// availableCondition says whether the object of a manifest exists.
func availableCondition(m *manifest, r *result) metav1.Condition {
	available := metav1.Condition{Type: workv1.ManifestAvailable}
	switch {
	case !m.mapped():
		available.Status, available.Reason = metav1.ConditionUnknown, reasonIncomplete
		available.Message = "Resource meta is incomplete"
	case r.presence == presencePresent:
		available.Status, available.Reason = metav1.ConditionTrue, reasonAvailable
		available.Message = "Resource is available"
	case r.presence == presenceAbsent:
		available.Status, available.Reason = metav1.ConditionFalse, reasonNotAvailable
		available.Message = "Resource is not available"
	default:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonFetchFailed
		available.Message = fmt.Sprintf("Failed to fetch resource: %v", r.readErr)
	}
	return available
}

// concludeFeedback sets the feedback values and their condition. What could not be read stays as it was, what is gone
// has no values.
func concludeFeedback(state *workv1.ManifestCondition, m *manifest, r *result, now time.Time) {
	if r.presence == presenceUnknown {
		return
	}
	synced := metav1.Condition{Type: conditionFeedback, Status: metav1.ConditionTrue, Reason: reasonFeedback}
	failed := r.valuesErr
	if r.presence == presenceAbsent {
		failed = "the resource does not exist"
	}
	switch {
	case len(m.option.feedback) == 0:
		synced.Reason = reasonNoFeedback
	case failed != "":
		synced.Status, synced.Reason = metav1.ConditionFalse, reasonFeedbackFailed
		synced.Message = "Sync status feedback failed with error " + failed
	}
	if !equality.Semantic.DeepEqual(state.StatusFeedbacks.Values, r.values) {
		state.StatusFeedbacks.Values = r.values
		meta.RemoveStatusCondition(&state.Conditions, conditionFeedback)
	}
	set(&state.Conditions, synced, now)
}

// concludeWork sets the conditions of the work from those of its manifests.
func concludeWork(status *workv1.ManifestWorkStatus, generation int64, now time.Time) {
	list := status.ResourceStatus.Manifests
	if len(list) > 0 {
		applied := metav1.Condition{
			Type: workv1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: reasonWorkApplied, Message: "Apply manifest work complete",
		}
		if failed := tally(list, workv1.ManifestApplied).no; failed > 0 {
			applied.Status, applied.Reason = metav1.ConditionFalse, reasonWorkFailed
			applied.Message = fmt.Sprintf("%s: %d of %d manifests failed to apply: %s", failedText, failed, len(list),
				firstWith(list, workv1.ManifestApplied, metav1.ConditionFalse))
		}
		setAt(&status.Conditions, applied, generation, now)
	}
	setAt(&status.Conditions, aggregateAvailable(list), generation, now)
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Reason, rulePrefix) && tally(list, c.Type).all() == 0
	})
	rules := map[string]struct{}{}
	for i := range list {
		for _, c := range list[i].Conditions {
			if strings.HasPrefix(c.Reason, rulePrefix) {
				rules[c.Type] = struct{}{}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		setAt(&status.Conditions, aggregateRule(list, name), generation, now)
	}
}

// count is how many manifests have a condition, by its status; message is that of the last of them.
type count struct {
	yes, no, unknown int
	message          string
}

// all is how many manifests have the condition.
func (c count) all() int { return c.yes + c.no + c.unknown }

// tally counts a condition over the manifests.
func tally(list []workv1.ManifestCondition, name string) count {
	var c count
	for i := range list {
		condition := meta.FindStatusCondition(list[i].Conditions, name)
		if condition == nil {
			continue
		}
		c.message = condition.Message
		switch condition.Status {
		case metav1.ConditionTrue:
			c.yes++
		case metav1.ConditionFalse:
			c.no++
		default:
			c.unknown++
		}
	}
	return c
}

// aggregateAvailable is the condition Available of the work.
func aggregateAvailable(list []workv1.ManifestCondition) metav1.Condition {
	c := tally(list, workv1.ManifestAvailable)
	available := metav1.Condition{Type: workv1.WorkAvailable}
	switch {
	case c.no > 0:
		available.Status, available.Reason = metav1.ConditionFalse, reasonSomeMissing
		available.Message = fmt.Sprintf("%d of %d resources are not available: %s", c.no, len(list),
			firstWith(list, workv1.ManifestAvailable, metav1.ConditionFalse))
	case c.unknown > 0:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonSomeUnknown
		available.Message = fmt.Sprintf("%d of %d resources have unknown status: %s", c.unknown, len(list),
			firstWith(list, workv1.ManifestAvailable, metav1.ConditionUnknown))
	case c.yes == 0:
		available.Status, available.Reason = metav1.ConditionUnknown, reasonSomeUnknown
		available.Message = "cannot get any available resource "
	default:
		available.Status, available.Reason = metav1.ConditionTrue, reasonAllAvailable
		available.Message = "All resources are available"
	}
	return available
}

// aggregateRule is a condition of the work that comes from condition rules: of all manifests that have it, or for
// Progressing of any.
func aggregateRule(list []workv1.ManifestCondition, name string) metav1.Condition {
	c := tally(list, name)
	rule := metav1.Condition{
		Type: name, Reason: reasonRulesAggregated,
		Message: fmt.Sprintf("Aggregated from %d manifest conditions", c.all()),
	}
	if c.all() == 1 && c.message != "" {
		rule.Message = c.message
	}
	anyTrue := name == workv1.WorkProgressing && c.yes > 0
	switch {
	case anyTrue:
		rule.Status = metav1.ConditionTrue
	case name == workv1.WorkProgressing && c.unknown > 0:
		rule.Status = metav1.ConditionUnknown
	case c.no > 0:
		rule.Status = metav1.ConditionFalse
	case c.unknown > 0 || c.yes == 0:
		rule.Status = metav1.ConditionUnknown
	default:
		rule.Status = metav1.ConditionTrue
	}
	return rule
}

// deletingCondition says that the work is going and what it waits for. With obstacle it says that instead.
func deletingCondition(left *drained, obstacle string) metav1.Condition {
	text := deletingText
	switch {
	case obstacle != "":
		text += ": " + obstacle
	case len(left.held) > 0:
		text += ": waiting for " + describeHolds(left.held)
	}
	if len(left.next) > 0 {
		names := make([]string, len(left.next))
		for i := range left.next {
			names[i] = entryIdentity(left.next[i]).String()
		}
		text += "; deleted after that: " + enumerate(names, maxNext, ", ")
	}
	return metav1.Condition{
		Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: reasonDeleting, Message: text,
	}
}

// set merges a condition whose observedGeneration is final.
func set(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.Message = shorten(c.Message)
	reconcile.SetCondition(conditions, c, now)
}

// setAt merges a condition of the work as of a generation.
func setAt(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	c.ObservedGeneration = generation
	set(conditions, c, now)
}

// shorten cuts a message to what the API takes.
func shorten(message string) string { return cut(message, maxMessage) }
