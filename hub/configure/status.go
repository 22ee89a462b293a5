package configure

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// record writes the decision into the status of a copy of the add-on: the configuration, the progress of its works and,
// once they are done, the applied configuration. That stays recorded when works fail after it has settled.
func record(f facts, decided configuration, after *addonv1beta1.ManagedClusterAddOn, works worksFacts, now time.Time) {
	status := &after.Status
	status.ConfigReferences = copied(decided.references)
	if decided.configured != nil {
		reconcile.SetCondition(&status.Conditions, *decided.configured, now)
	}
	condition := progress(f.addOn, status.Conditions, works, decided.references)
	settles := f.settles(now)
	if completed(condition) && len(works.rollingOut) > 0 && (settles || f.completedSince().IsZero()) {
		condition = inProgress("progressing... " + message.List(works.rollingOut, maxListed, "; "))
	}
	if !completed(condition) {
		if settles {
			forgetApplied(f, decided, status.ConfigReferences)
		}
		condition = f.failing(decided, condition, settles && broken(works), now)
	}
	f.noteSoak(decided, &status.Conditions, completed(condition), settles, now)
	setProgress(f, decided, &status.Conditions, condition, now)
	if completed(condition) {
		for i := range status.ConfigReferences {
			reference := &status.ConfigReferences[i]
			reference.LastAppliedConfig = reference.DesiredConfig.DeepCopy()
		}
	}
}

// settled is how long a content that was completed must stay so at least: a cluster reports a change of its pods a
// moment after it has applied the workload.
const settled = 10 * time.Second

// completedSince returns since when the status says that the add-on has its configuration; zero when it does not.
func (f facts) completedSince() time.Time {
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	if was == nil || !completed(*was) {
		return time.Time{}
	}
	return was.LastTransitionTime.Time
}

// settles reports whether the configuration of the add-on is completed for less time than the rollout wants to see it
// well. What happens later is for its health to show.
func (f facts) settles(now time.Time) bool {
	since := f.completedSince()
	if since.IsZero() || meta.IsStatusConditionTrue(f.addOn.Status.Conditions, names.ConditionSoaked) {
		return false
	}
	window := settled
	if f.cma != nil && f.placement >= 0 {
		window = max(window, addonconfig.MinSuccessTime(f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy))
	}
	return now.Before(since.Add(window))
}

// noteSoak records whether a configuration had soaked when it is not complete any more, and if not, since when it was
// complete at first. Each turn between complete and not complete dates Progressing again, so that a rollout could wait
// for ever for who takes turns. Another configuration of the rollout begins again.
func (f facts) noteSoak(
	decided configuration, conditions *[]metav1.Condition, isCompleted, settles bool, now time.Time,
) {
	first, noted := f.completedSince(), meta.FindStatusCondition(*conditions, names.ConditionSoaked)
	same := addonconfig.SameDesired(f.addOn.Status.ConfigReferences, decided.references)
	switch {
	case !same && !decided.target.Admitted(f.addOn):
		meta.RemoveStatusCondition(conditions, names.ConditionSoaked)
	case f.cma == nil, f.placement < 0, isCompleted, first.IsZero():
	case !settles:
		reconcile.SetCondition(conditions, metav1.Condition{
			Type: names.ConditionSoaked, Status: metav1.ConditionTrue, Reason: reasonSoaked,
			Message: "the configuration had soaked before it broke, which is no matter of the rollout",
		}, now)
	case noted == nil:
		reconcile.SetCondition(conditions, metav1.Condition{
			Type: names.ConditionSoaked, Status: metav1.ConditionFalse, Reason: reasonBroke,
			Message: "the configuration was complete and did not stay so while it soaked; the rollout waits for the soak and " +
				"the progressDeadline from when it was complete at first",
		}, first)
	}
}

// messageBroke begins the message of Progressing of an add-on that was complete and broke while it settled.
const messageBroke = "it was complete and broke: "

// failing returns the condition of an add-on that is not complete. One that was, and broke while it settled, failed:
// the next cluster would break, too. A change of its pods that is reported late is not a failure. Who failed has failed
// until it is complete, so that a rollout does not go on because pods are started once more.
func (f facts) failing(decided configuration, c metav1.Condition, breaks bool, now time.Time) metav1.Condition {
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, c.Type)
	same := addonconfig.SameDesired(f.addOn.Status.ConfigReferences, decided.references)
	switch {
	case was == nil || !same || c.Reason != addonv1beta1.ProgressingReasonProgressing:
		return c
	case breaks && !now.Before(f.completedSince().Add(settled)), strings.HasPrefix(was.Message, messageBroke):
		return notProgressing(addonv1beta1.ProgressingReasonFailed, messageBroke+c.Message)
	case was.Reason == addonv1beta1.ProgressingReasonFailed:
		return notProgressing(addonv1beta1.ProgressingReasonFailed, c.Message)
	}
	return c
}

// forgetApplied removes what is recorded as applied of a content that did not stay completed while it settled: the
// cluster is on its way to it again, or fails.
func forgetApplied(f facts, decided configuration, references []addonv1beta1.ConfigReference) {
	if !addonconfig.SameDesired(f.addOn.Status.ConfigReferences, decided.references) {
		return
	}
	for i := range references {
		if applied, desired := references[i].LastAppliedConfig, references[i].DesiredConfig; applied != nil &&
			desired != nil && *applied == *desired {
			references[i].LastAppliedConfig = nil
		}
	}
}

// setProgress sets the condition Progressing. Its transition time is when the present content became desired or, once
// it is completed, when that was: rollouts measure deadlines and the time of success from it, so it does not move while
// an add-on is on its way, whatever it waits for.
func setProgress(
	f facts, decided configuration, conditions *[]metav1.Condition, want metav1.Condition, now time.Time,
) {
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, want.Type)
	since := metav1.NewTime(now)
	if was != nil && completed(*was) == completed(want) &&
		addonconfig.SameDesired(f.addOn.Status.ConfigReferences, decided.references) {
		since = was.LastTransitionTime
	}
	reconcile.SetCondition(conditions, want, now)
	meta.FindStatusCondition(*conditions, want.Type).LastTransitionTime = since
}

func copied(references []addonv1beta1.ConfigReference) []addonv1beta1.ConfigReference {
	if references == nil {
		return nil
	}
	all := make([]addonv1beta1.ConfigReference, 0, len(references))
	for i := range references {
		all = append(all, *references[i].DeepCopy())
	}
	return all
}
