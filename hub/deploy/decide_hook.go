package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// maxAttempts is how often a pre-delete hook is tried before the add-on waits for a person.
	maxAttempts = 5
	// firstPause and lastPause bound the pause after a failed attempt, which doubles.
	firstPause, lastPause = 30 * time.Second, 5 * time.Minute
	// clockSlack is by how much the clocks of two replicas may differ.
	clockSlack = time.Minute
	// defaultDeadline is how long hooks may take from the deletion of the add-on.
	defaultDeadline = time.Hour

	// deadlineNone and afterSkip are values of the annotations of hooks; afterWait is the default.
	deadlineNone         = "none"
	afterWait, afterSkip = "Wait", "Skip"
)

// recordOf returns the record of attempts of an add-on, by side. One that cannot be read is none.
func recordOf(annotations map[string]string) map[works.Side]attempts {
	record := map[works.Side]attempts{}
	if json.Unmarshal([]byte(annotations[names.AnnotationHookAttempts]), &record) != nil {
		return map[works.Side]attempts{}
	}
	return record
}

// decideHooks decides about the hooks of one side.
func decideHooks(f deletionFacts, h hookFacts) hookPlan {
	var state works.HookState
	if h.work != nil {
		state = works.ReadHook(h.work)
	}
	limit := limitOf(f, h, state)
	var p hookPlan
	switch {
	case h.none:
		return hookPlan{done: true}
	case h.cluster == nil:
		return skippedHook(fmt.Sprintf("There is no %s any more on which a pre-delete hook could run.", h.describe()))
	case h.work != nil && h.work.DeletionTimestamp == nil && state.Complete:
		return hookPlan{done: true, message: fmt.Sprintf("The pre-delete hook is complete on %s.", h.describe())}
	case h.work == nil && h.unknown == "" && len(h.hooks) == 0:
		return hookPlan{done: true, message: fmt.Sprintf("The add-on has no pre-delete hook for %s.", h.describe())}
	case h.noNamespace && (h.work == nil || h.work.DeletionTimestamp != nil):
		return skippedHook(fmt.Sprintf("The namespace of %s is being deleted, so a pre-delete hook cannot run any more.",
			h.describe()))
	case limit.passed(f.now) && limit.after == afterSkip:
		return skippedHook(fmt.Sprintf("The pre-delete hook on %s was not complete %s after the deletion, and annotation %s "+
			"is %s.", h.describe(), limit.length, names.AnnotationHookAfterDeadline, afterSkip))
	case h.work != nil && h.work.DeletionTimestamp != nil:
		p = waitingHook(fmt.Sprintf("The work of the pre-delete hook on %s is being deleted, and made again then "+
			"(ManifestWork %s/%s).", h.describe(), h.work.Namespace, h.work.Name))
	case h.work != nil && state.Failure != "":
		p = failedHook(f, h, state, limit)
	case h.work != nil:
		p = waitingHook(runningHook(h))
	case h.unknown != "":
		p = waitingHook("It is unknown whether a pre-delete hook has to run on " + h.describe() + ": " +
			message.Sentence(h.unknown))
	case h.hopeless(f):
		return skippedHook(fmt.Sprintf("A pre-delete hook cannot run on %s: cluster %s is being deleted, and the hub does "+
			"not accept it.", h.describe(), f.cluster.Name))
	case h.refusal(f) != "":
		p = waitingHook(h.refusal(f))
	case h.earlier != nil:
		p = waitingHook(fmt.Sprintf("The work of a pre-delete hook of an earlier add-on of this name on %s is deleted first "+
			"(ManifestWork %s/%s).", h.describe(), h.earlier.Namespace, h.earlier.Name))
		if h.earlier.DeletionTimestamp == nil {
			p.steps = []workStep{{Verb: reconcile.Delete, Before: h.earlier}}
		}
	default:
		work := works.HookWork(f.setFor(h), h.hooks)
		p = waitingHook(fmt.Sprintf("The pre-delete hook runs on %s (ManifestWork %s/%s).", h.describe(), work.Namespace,
			work.Name))
		p.steps = []workStep{{Verb: reconcile.Create, After: work}}
	}
	return limit.apply(f, p)
}

func skippedHook(message string) hookPlan {
	return hookPlan{done: true, skipped: true, message: message}
}

func waitingHook(message string) hookPlan {
	return hookPlan{reason: reasonWaitingForHook, message: message}
}

// failedHook decides about hooks of which one failed: the failure is recorded first; after a pause the work is deleted,
// so that it is made again.
func failedHook(f deletionFacts, h hookFacts, state works.HookState, limit hookLimit) hookPlan {
	record := recordOf(f.addOn.Annotations)[h.side]
	p := hookPlan{reason: reasonHookFailed}
	failed := f.now.UTC().Truncate(time.Second)
	switch {
	case record.Work != string(h.work.UID):
		record = attempts{Count: record.Count + 1, Work: string(h.work.UID), Failed: failed}
		p.failed = &record
	case record.Failed.After(f.now.Add(clockSlack)): // A clock that was ahead is right again.
		record.Failed = failed
		p.failed = &record
	}
	p.message = fmt.Sprintf("The pre-delete hook on %s failed, attempt %d of %d (ManifestWork %s/%s): %s", h.describe(),
		record.Count, maxAttempts, h.work.Namespace, h.work.Name, message.Sentence(state.Failure))
	again := record.Failed.Add(pauseAfter(record.Count))
	switch {
	case record.Count >= maxAttempts:
		p.message += fmt.Sprintf(" It is not tried again. Correct the cause and start the attempts again: kubectl annotate "+
			"managedclusteraddon %s -n %s %s-", f.addOn.Name, f.addOn.Namespace, names.AnnotationHookAttempts)
	case limit.passed(f.now):
	case p.failed == nil && !f.now.Before(again):
		p.message += " It is tried again."
		p.steps = []workStep{{Verb: reconcile.Delete, Before: h.work}}
	default:
		p.message += fmt.Sprintf(" The next attempt is at %s.", again.UTC().Format(time.RFC3339))
		p.wake = again
	}
	return p
}

// pauseAfter returns the pause after a number of failed attempts.
func pauseAfter(count int) time.Duration {
	return pause.Growing{First: firstPause, Last: lastPause}.After(max(count, 1))
}

// hookLimit is the deadline of hooks.
type hookLimit struct {
	// at is the deadline; zero for none.
	at     time.Time
	length time.Duration
	after  string
	// problem describes an annotation that cannot be understood; empty for none.
	problem string
}

// passed reports whether the deadline has passed.
func (l hookLimit) passed(now time.Time) bool { return !l.at.IsZero() && !now.Before(l.at) }

// apply adds the deadline to the plan of hooks that are not done.
func (l hookLimit) apply(f deletionFacts, p hookPlan) hookPlan {
	p.message += l.problem
	switch {
	case l.at.IsZero():
	case !l.passed(f.now):
		p.wake = reconcile.Earliest(p.wake, l.at)
	default:
		p.reason = reasonHookDeadline
		p.message += fmt.Sprintf(" The deadline of %s after the deletion has passed, and the add-on waits for a person. To "+
			"give the hook more time: kubectl annotate managedclusteraddon %s -n %s --overwrite %s=%s", l.length, f.addOn.Name,
			f.addOn.Namespace, names.AnnotationHookDeadline, deadlineNone)
	}
	return p
}

// limitOf returns the deadline of the hooks of a side: what the add-on says counts, then what the hooks say, the
// longest of them.
func limitOf(f deletionFacts, h hookFacts, state works.HookState) hookLimit {
	terms := state.Terms
	for _, hook := range h.hooks {
		if hook.Terms != nil && h.work == nil {
			terms = append(terms, *hook.Terms)
		}
	}
	limit := hookLimit{length: defaultDeadline, after: afterWait}
	var unlimited, stated bool
	skips := 0
	for _, t := range terms {
		if t.After == afterSkip {
			skips++
		}
		switch length, err := time.ParseDuration(t.Deadline); {
		case t.Deadline == deadlineNone:
			unlimited = true
		case t.Deadline == "":
		case err != nil:
			limit.problem = fmt.Sprintf(" Annotation %s=%s of the hook is no duration and does not count.",
				names.AnnotationHookDeadline, t.Deadline)
		case !stated || length > limit.length:
			limit.length, stated = length, true
		}
	}
	if skips > 0 && skips == len(terms) {
		limit.after = afterSkip
	}
	limit.after = cmp.Or(f.addOn.Annotations[names.AnnotationHookAfterDeadline], limit.after)
	if own := f.addOn.Annotations[names.AnnotationHookDeadline]; own != "" {
		length, err := time.ParseDuration(own)
		unlimited = own == deadlineNone || (unlimited && err != nil)
		switch {
		case err == nil:
			limit.length = length
		case !unlimited:
			limit.problem = fmt.Sprintf(" Annotation %s=%s of the add-on is no duration and does not count.",
				names.AnnotationHookDeadline, own)
		}
	}
	if !unlimited {
		limit.at = f.addOn.DeletionTimestamp.Add(limit.length)
	}
	return limit
}

// hopeless reports that a hook would wait for an acceptance that nobody gives any more, because the cluster is being
// deleted. Only the agent of a cluster that was accepted once can run one, and on that cluster alone.
func (h hookFacts) hopeless(f deletionFacts) bool {
	return f.accepted() != nil && f.cluster.DeletionTimestamp != nil &&
		(h.side == works.Hosting || !names.AcceptedBefore(f.cluster, f.cluster.Status.Conditions))
}

// refusal returns why no hook is started: the hub does not accept one of the clusters, unless the managed one is being
// deleted, or the hosting cluster does not host the add-on. It is empty when hooks may start.
func (h hookFacts) refusal(f deletionFacts) string {
	switch {
	case f.accepted() != nil && f.cluster.DeletionTimestamp == nil:
		return "The pre-delete hook is not started: " + message.Sentence(f.accepted().Error())
	case h.side == works.Hosting && hostOf(f.facts).untouched():
		return fmt.Sprintf("The pre-delete hook is not started on %s, which the hub does not accept, or which does not "+
			"consent to host the add-on (its annotation %s).", h.describe(), names.AnnotationHosts)
	}
	return ""
}

// describe names the cluster of the hooks.
func (h hookFacts) describe() string {
	if h.side == works.Hosting {
		return strings.TrimSpace("hosting cluster " + h.name)
	}
	return "cluster " + h.name
}

// runningHook describes hooks that run.
func runningHook(h hookFacts) string {
	text := fmt.Sprintf("The pre-delete hook runs on %s and is not complete (ManifestWork %s/%s).", h.describe(),
		h.work.Namespace, h.work.Name)
	if meta.IsStatusConditionFalse(h.work.Status.Conditions, workv1.WorkApplied) {
		refused, _ := refusals([]*workv1.ManifestWork{h.work})
		text += " " + strings.Join(refused, " ")
	}
	if clusterSilent(h.cluster) {
		text += " The cluster does not report to the hub at present."
	}
	return text
}
