package work

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// completable reports whether a rule may find the manifest complete.
func (m *manifest) completable() bool {
	return slices.ContainsFunc(m.option.rules, func(rule workv1.ConditionRule) bool {
		return rule.Condition == workv1.ManifestComplete
	})
}

// frozen reports whether a manifest must not be applied any more: because a rule found it complete, for that would run
// a finished Job anew, or because its work is complete. A new generation of a work is applied all the same where the
// manifests themselves are not complete.
func frozen(work *workv1.ManifestWork, m *manifest, status *workv1.ManifestCondition) bool {
	if completed(status) && m.completable() {
		return true
	}
	complete := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkComplete)
	return complete != nil && complete.Status == metav1.ConditionTrue && strings.HasPrefix(complete.Reason, rulePrefix) &&
		complete.ObservedGeneration == work.Generation && appliedAt(status, work.Generation)
}

// completed reports whether a condition rule once found a manifest complete, whichever agent asked it.
func completed(state *workv1.ManifestCondition) bool {
	if state == nil {
		return false
	}
	complete := meta.FindStatusCondition(state.Conditions, workv1.ManifestComplete)
	return complete != nil && complete.Status == metav1.ConditionTrue && strings.HasPrefix(complete.Reason, rulePrefix)
}

// freeze gives a frozen manifest, of whose object there is news, another wish than it has when it thaws, so that it is
// applied then. As long as there is none the object is as the manifest says, frozen or not.
func (t *task) freeze() {
	if !t.frozen || (t.granted() && t.holds()) {
		return
	}
	t.mark(func(w *wish) { w.frozen = true })
}

// fallenBehind reports whether an object that is frozen does not say what its manifest says, as far as that is not
// known from the status.
func (t *task) fallenBehind(live *unstructured.Unstructured) bool {
	if t.current || (t.prior.wish == t.wish && t.prior.failure == nil) {
		return t.prior.behind
	}
	desired, err := t.desired()
	return err != nil || live == nil || !content.Contains(content.Of(live), content.Of(desired))
}

// thawing wakes the work again when what was frozen in this pass is not frozen by its new status: only the work's own
// status changes then, which wakes nobody.
func thawing(work *workv1.ManifestWork, tasks []task, status workv1.ManifestWorkStatus, now time.Time,
) reconcile.Outcome {
	after := &workv1.ManifestWork{ObjectMeta: work.ObjectMeta, Status: status}
	for i := range tasks {
		if tasks[i].frozen && !frozen(after, tasks[i].manifest, &status.ResourceStatus.Manifests[i]) {
			return reconcile.DoneUntil(now)
		}
	}
	return reconcile.Done()
}

// appliedBefore reports whether an earlier generation of a manifest was applied.
func appliedBefore(state *workv1.ManifestCondition) bool {
	return meta.IsStatusConditionTrue(state.Conditions, workv1.ManifestApplied)
}
