package configure

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// record writes the decision into the status of a copy of the add-on: the configuration, the progress of its works and,
// once they are done, the applied configuration. That stays recorded when works fail after it has settled.
func record(f facts, decided configuration, after *addonv1beta1.ManagedClusterAddOn, works addon.Progress) {
	status, now := &after.Status, works.Now
	status.ConfigReferences = copied(decided.references)
	if decided.configured != nil {
		reconcile.SetCondition(&status.Conditions, *decided.configured, now)
	}
	f.noteDependencies(&status.Conditions, now)
	condition := progress(f.addOn, status.Conditions, works, decided.references)
	if condition.Reason == reasonWaitingForManifestApplied {
		condition.Message += f.program(decided, now)
	}
	r := f.recording(decided, now)
	if completed(condition) && len(works.RollingOut) > 0 && (r.settles || f.completedSince().IsZero()) {
		condition = inProgress("progressing... " + message.List(works.RollingOut, maxListed, "; "))
	}
	if !completed(condition) {
		if r.soaks {
			forgetApplied(f, decided, status.ConfigReferences)
		}
		condition = r.failing(condition, r.settles && broken(works))
	}
	if r.begins() {
		r.noted, r.continues = nil, false
	}
	r.noteSoak(&status.Conditions, completed(condition))
	f.setProgress(r.continues, &status.Conditions, condition, now)
	f.noteWay(decided.target, r.continues, &status.Conditions, now)
	if completed(condition) {
		for i := range status.ConfigReferences {
			reference := &status.ConfigReferences[i]
			reference.LastAppliedConfig = reference.DesiredConfig.DeepCopy()
		}
	}
}

// recording is what is known of an add-on while its decision is written.
type recording struct {
	facts   facts
	decided configuration
	now     time.Time
	// noted and contents are what the method noted returns, but noted is nil where the add-on begins again.
	noted    *metav1.Condition
	contents addonconfig.Contents
	// settles and continues are what the methods of these names return, but an add-on that begins again does not continue.
	// soaks reports whether what the add-on was complete with had not soaked.
	settles, continues, soaks bool
}

func (f facts) recording(decided configuration, now time.Time) recording {
	r := recording{facts: f, decided: decided, now: now}
	r.noted, r.contents = f.noted(decided)
	r.settles, r.continues = f.settles(r.noted, now), f.continues(decided, r.contents)
	r.soaks = r.settles || f.failedWith(decided.target)
	return r
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
func (f facts) settles(noted *metav1.Condition, now time.Time) bool {
	since := f.completedSince()
	if since.IsZero() || noted != nil && noted.Status == metav1.ConditionTrue {
		return false
	}
	return now.Before(since.Add(f.window()))
}

// window is for how long the rollout wants to see a completed configuration well.
func (f facts) window() time.Duration {
	if f.cma == nil || f.placement < 0 {
		return settled
	}
	return max(settled, addonconfig.MinSuccessTime(f.cma.Spec.InstallStrategy.Placements[f.placement].RolloutStrategy))
}

// failedWith reports whether the rollout counts the cluster as failed with the target, so that it had not soaked. What
// an agent says about when it fell does not count.
func (f facts) failedWith(target addonconfig.Target) bool {
	c := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionRolloutFailed)
	return c != nil && c.Status == metav1.ConditionTrue && target.GivesAll(addonconfig.ReadContents(c.Message))
}

// Messages of the condition addon.spokelet.io/Soaked. The contents that the rollout gave follow.
const (
	messageSoaked   = "the configuration had soaked before it broke, so that the rollout does not wait for it"
	messageUnsoaked = "the configuration was complete and did not stay so while it soaked; the rollout waits for the " +
		"soak and the progressDeadline from when it was complete at first"
	messageOwn = "spec.configs of the add-on names configurations; a change of them does not begin the time that the " +
		"rollout waits for it again"
)

// noted returns condition addon.spokelet.io/Soaked of the add-on and the contents that it names; nil where the add-on
// does not have those. A hub manager that does not know the condition leaves it beside another content.
func (f facts) noted(decided configuration) (*metav1.Condition, addonconfig.Contents) {
	c := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionSoaked)
	if c == nil {
		return nil, nil
	}
	contents := addonconfig.ReadContents(c.Message)
	if !decided.target.Gives(contents) && !decided.target.Same(contents, decided.references) {
		return nil, nil
	}
	return c, contents
}

// continues reports whether the rollout gives the add-on what it gave it before. contents are those that condition
// addon.spokelet.io/Soaked names. Without them, a configuration of the rollout that spec.configs does not replace any
// more looks like a new one.
func (f facts) continues(decided configuration, contents addonconfig.Contents) bool {
	had := decided.target.Contents(f.addOn.Status.ConfigReferences)
	return decided.target.Same(had, decided.references) || decided.target.Same(contents, decided.references)
}

// begins reports whether the add-on gets, for the first time, a content of the rollout that a configuration of its own
// spec replaced until now, and had soaked with that one. It begins again then, once for each content. One that had not
// soaked has no more time than that leaves.
func (r recording) begins() bool {
	soaked := r.noted != nil && r.noted.Status == metav1.ConditionTrue ||
		!r.settles && !r.facts.completedSince().IsZero()
	return soaked && r.decided.gets && r.decided.target.GivesNew(r.contents)
}

// noteSoak records whether a configuration had soaked when it is not complete any more, and if not, since when it was
// complete at first. Each turn between complete and not complete dates Progressing again, so that a rollout could wait
// for ever for a cluster that takes turns. Of an add-on that names configurations itself it records what the rollout
// gives, so that turns between those do not date Progressing. Another configuration of the rollout begins again.
func (r recording) noteSoak(conditions *[]metav1.Condition, isCompleted bool) {
	f, noted, target, now := r.facts, r.noted, r.decided.target, r.now
	status, keeps := metav1.ConditionUnknown, r.decided.held != "" && !r.decided.gets
	if noted != nil {
		status = noted.Status
	} else if meta.FindStatusCondition(*conditions, names.ConditionSoaked) != nil {
		if keeps {
			return // It may be about what the add-on gets when it is not held any more.
		}
		meta.RemoveStatusCondition(conditions, names.ConditionSoaked)
	}
	first, rolledOut := f.completedSince(), f.cma != nil && f.placement >= 0
	broke := rolledOut && !isCompleted && !first.IsZero() && r.continues
	switch {
	case broke && !r.soaks:
		status = metav1.ConditionTrue
	case broke && status == metav1.ConditionUnknown:
		status, now = metav1.ConditionFalse, first
	case status == metav1.ConditionUnknown && keeps:
		return
	case status == metav1.ConditionUnknown && (!rolledOut || !target.HasOwn()):
		meta.RemoveStatusCondition(conditions, names.ConditionSoaked)
		return
	}
	contents := r.contents
	if noted == nil || !keeps {
		complete := noted != nil && noted.Status != metav1.ConditionUnknown
		contents = target.Noted(contents, complete, f.addOn.Status.ConfigReferences, r.decided.references)
	}
	reconcile.SetCondition(conditions, soak(status, contents), now)
}

// soak returns condition addon.spokelet.io/Soaked.
func soak(status metav1.ConditionStatus, contents addonconfig.Contents) metav1.Condition {
	c := metav1.Condition{Type: names.ConditionSoaked, Status: status}
	switch status {
	case metav1.ConditionTrue:
		c.Reason, c.Message = reasonSoaked, messageSoaked
	case metav1.ConditionFalse:
		c.Reason, c.Message = reasonBroke, messageUnsoaked
	case metav1.ConditionUnknown:
		c.Reason, c.Message = reasonOwn, messageOwn
	}
	c.Message += "; the rollout gave " + contents.String()
	return c
}

// noteWay records what the rollout knows of the way of the cluster, for a hub manager that starts then. It is about the
// progress that the plan saw, and about the next one only where the cluster is not well. Where no plan decides, it
// stays until the add-on is well. continues is what the method continues returns.
func (f facts) noteWay(
	target addonconfig.Target, continues bool, conditions *[]metav1.Condition, now time.Time,
) {
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	is := meta.FindStatusCondition(*conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	way := f.admission.Way
	if noted := meta.FindStatusCondition(*conditions, names.ConditionRolloutFailed); !f.planned && noted != nil {
		way.Stage = noted.Reason
	}
	var since metav1.Time
	if was != nil {
		since = was.LastTransitionTime
	}
	moved := was != nil && !since.Equal(&is.LastTransitionTime)
	// Of an add-on without references the failure is that of the one before it.
	ofBefore := len(f.addOn.Status.ConfigReferences) == 0
	if f.undecoded != "" { // What is remembered stays until it is known whether it holds.
		return
	}
	if f.undo.active && f.undo.failed {
		f.noteUndone(conditions, *is, now)
		return
	}
	stays := (continues || ofBefore) && way.Counts() && (!completed(*is) || !well(*conditions, way.Stage))
	switch {
	case !f.planned && !stays, f.planned && f.admission.Decided() && (way.Stage == "" || moved && !stays):
		f.forgetWay(conditions, now)
	case f.planned && way.Stage != "" && way.Progress == since.Unix():
		c := onWay(way.Stage)
		if why := cmp.Or(f.undo.kept, f.admission.NotUndone); why != "" {
			c.Message += "; it is not undone: " + why
		}
		c.Message += addonconfig.NoteUndone(f.undoneHere())
		c.Message += "; the rollout gave " + target.Contents(target.References).String()
		reconcile.SetCondition(conditions, c, now)
		noted := meta.FindStatusCondition(*conditions, c.Type)
		if way.Stage == addonconfig.ReasonAgain {
			noted.LastTransitionTime = metav1.NewTime(way.Since)
		}
		if noted.LastTransitionTime.Before(&is.LastTransitionTime) { // Otherwise it would count as one of a round before.
			noted.LastTransitionTime = is.LastTransitionTime
		}
	}
}

// forgetWay removes what is recorded of the way of the cluster, except what it returned from.
func (f facts) forgetWay(conditions *[]metav1.Condition, now time.Time) {
	before := f.undoneHere()
	if len(before) == 0 {
		meta.RemoveStatusCondition(conditions, names.ConditionRolloutFailed)
		return
	}
	c := onWay(addonconfig.ReasonUndoneBefore)
	c.Message += addonconfig.NoteUndone(before)
	reconcile.SetCondition(conditions, c, now)
}

// noteUndone records that the cluster returned from what it failed with. It counts as long as Progressing is not later.
func (f facts) noteUndone(conditions *[]metav1.Condition, progressing metav1.Condition, now time.Time) {
	c, all := onWay(addonconfig.ReasonUndone), f.undoneHere()
	if !slices.Contains(all, f.undo.content) {
		all = append(all, f.undo.content)
	}
	c.Message += addonconfig.NoteUndone(all)
	c.Message += "; the rollout gave " + f.undo.from.Contents(f.undo.from.References).String()
	reconcile.SetCondition(conditions, c, now)
	noted := meta.FindStatusCondition(*conditions, c.Type)
	if noted.LastTransitionTime.Before(&progressing.LastTransitionTime) {
		noted.LastTransitionTime = progressing.LastTransitionTime
	}
}

// well reports whether an agent is available, or nothing is known of that. One that was not is to say that it is.
func well(conditions []metav1.Condition, stage string) bool {
	c := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	return c == nil || c.Status == metav1.ConditionTrue ||
		c.Status == metav1.ConditionUnknown && stage != addonconfig.ReasonUnavailable
}

// onWay returns condition addon.spokelet.io/RolloutFailed without the contents of the rollout.
func onWay(stage string) metav1.Condition {
	c := metav1.Condition{Type: names.ConditionRolloutFailed, Status: metav1.ConditionFalse, Reason: stage}
	if (addonconfig.Way{Stage: stage}).Counts() {
		c.Status = metav1.ConditionTrue
	}
	c.Message = map[string]string{
		addonconfig.ReasonFailed: "the rollout counts this cluster as failed, until it has the configuration and is well, " +
			"or the rollout gives another one (see Progressing)",
		addonconfig.ReasonUnavailable: "the rollout counts this cluster as failed, until its agent is available, or the " +
			"rollout gives another configuration: it was not available when it got this one (see Available)",
		addonconfig.ReasonTimedOut: "the rollout counts this cluster as timed out, until it has the configuration and is " +
			"well, or the rollout gives another one: it was not ready within the progressDeadline (see Progressing)",
		addonconfig.ReasonAwaits: "what spec.configs of the add-on names is not known, so that no progressDeadline counts",
		addonconfig.ReasonAgain: "what spec.configs of the add-on names has become known, so that the progressDeadline " +
			"began again",
		addonconfig.ReasonUndone: "the rollout counts this cluster as failed; it has what it had before, until the rollout " +
			"gives another configuration, or spec.retry of its AddOnPolicy has the content",
		addonconfig.ReasonUndoneBefore: "what failed on this cluster and was undone is not given to it again, until " +
			"spec.retry of its AddOnPolicy has it",
	}[stage]
	return c
}

// messageBroke begins the message of Progressing of an add-on that was complete and broke while it settled.
const messageBroke = "it was complete and broke: "

// failing returns the condition of an add-on that is not complete. One that was, and broke while it settled, failed:
// the next cluster would break, too. A change of its pods that is reported late is not a failure. Who failed has failed
// until it is complete, so that a rollout does not go on because pods are started once more, or because its own spec
// names what is not known.
func (r recording) failing(c metav1.Condition, breaks bool) metav1.Condition {
	had := r.facts.addOn.Status
	was := meta.FindStatusCondition(had.Conditions, c.Type)
	same := addonconfig.SameDesired(had.ConfigReferences, r.decided.references) ||
		r.continues && r.decided.target.AwaitsOwn
	switch {
	case was == nil || !same || c.Reason != addonv1beta1.ProgressingReasonProgressing:
		return c
	case breaks && !r.now.Before(r.facts.completedSince().Add(settled)), strings.HasPrefix(was.Message, messageBroke):
		return notProgressing(addonv1beta1.ProgressingReasonFailed, messageBroke+c.Message)
	case was.Reason == addonv1beta1.ProgressingReasonFailed:
		return notProgressing(addonv1beta1.ProgressingReasonFailed, c.Message)
	}
	return c
}

// forgetApplied removes what is recorded as applied of a content that did not stay completed while it settled: the
// cluster is on its way to it again, or fails. So it is where a configuration of its own spec went meanwhile, and all
// that is left was applied.
func forgetApplied(f facts, decided configuration, references []addonv1beta1.ConfigReference) {
	isApplied := func(r addonv1beta1.ConfigReference) bool {
		return r.LastAppliedConfig != nil && r.DesiredConfig != nil && *r.LastAppliedConfig == *r.DesiredConfig
	}
	on := func(r addonv1beta1.ConfigReference) bool { return !isApplied(r) } // It is on its way whatever is forgotten.
	same := addonconfig.SameDesired(f.addOn.Status.ConfigReferences, decided.references)
	if !same && slices.ContainsFunc(references, on) {
		return
	}
	for i := range references {
		if isApplied(references[i]) {
			references[i].LastAppliedConfig = nil
		}
	}
}

// setProgress sets the condition Progressing. Its transition time is when the rollout gave the present content or, once
// it is completed, when that was: rollouts measure deadlines and the time of success from it, so it does not move while
// an add-on is on its way, whatever it waits for, and whatever its own spec names.
func (f facts) setProgress(
	continues bool, conditions *[]metav1.Condition, want metav1.Condition, now time.Time,
) {
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, want.Type)
	since := metav1.NewTime(now)
	if was != nil && completed(*was) == completed(want) && continues {
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
