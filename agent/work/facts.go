package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// facts holds what a pass begins with. The objects are those of the caches and must not be changed; a write of the pass
// replaces them.
type facts struct {
	now   time.Time
	owner watch.Owner
	// room is where the pass decodes objects; nil bounds nothing.
	room *spoke.Room
	// crowded reports that the work waits for its turn.
	crowded bool
	// work and applied are nil when there is none.
	work    *workv1.ManifestWork
	applied *workv1.AppliedManifestWork
	// stale reports that a cache has not seen the last write of this process.
	stale bool
	// standing is how the work stands to the hub, askAgain when to look again where that is not settled, and unanswered
	// why the hub did not say.
	standing   standing
	askAgain   time.Time
	unanswered error
	// manifests are those of the work.
	manifests []manifest.Manifest
	// offline reports that the hub has not listed its works yet, so that work is its copy of before; nil then says
	// nothing.
	offline bool
	copied  *offline.Copy
	// learned is what passes concluded and the hub may not know, and atHub the work as the hub has it where work knows
	// more; nil otherwise. inCopy reports that the copy of the work has what was learned.
	learned *workv1.ManifestWorkStatus
	atHub   *workv1.ManifestWork
	inCopy  bool
	// timing tells how long the pass takes; nil tells nothing.
	timing *latency.Pass
}

// orphans reports whether the work orphans an object. A work that is changed to orphan an object and deleted at once
// does so, although no pass came between the two.
func (f *facts) orphans(id manifest.ID) bool {
	return f.work != nil && !manifest.Owned(f.work.Spec.DeleteOption, id)
}

// complete puts what was learned without the hub into the work, and keeps the one that the hub has.
func (f *facts) complete() {
	if f.learned == nil {
		return
	}
	if after, more := status.WithCompletions(f.work, f.manifests, f.learned, f.now); more {
		work := *f.work
		work.Status = after
		f.work, f.atHub = &work, f.work
	}
}

// copyKnowsMore reports whether the copy of the work is the only one on disk that has what was learned without the hub.
func (f *facts) copyKnowsMore() bool { return f.inCopy && f.atHub != nil }

// reported returns the work with the status that the hub has.
func (f *facts) reported() *workv1.ManifestWork {
	if f.atHub != nil {
		return f.atHub
	}
	return f.work
}

// standing is how the work in the cache stands to the hub. After a restart, an API server whose own cache lags may list
// works as they were.
type standing int

const (
	// standingBelieved: nothing speaks against the cache, so the hub was not asked.
	standingBelieved standing = iota
	// standingConfirmed: the hub has the work as the cache does.
	standingConfirmed
	// standingBehind: the hub has another work of the name, a later generation, or none.
	standingBehind
	// standingUnanswered: the hub does not answer, so that nothing may be deleted by the cache.
	standingUnanswered
)

// onlyKept reports whether the pass only keeps what was applied: it creates no object that did not exist, deletes none
// and writes nothing to the hub.
func (f *facts) onlyKept() bool { return f.offline || f.standing == standingUnanswered }

// object holds what is known of the object of one manifest before a pass.
type object struct {
	// known holds what the watch, the list of applied resources and the status of the work say.
	known apply.Known
	// unwatched reports that no watch covers the object.
	unwatched bool
	// frozen reports that the manifest is complete, so that it must not be applied.
	frozen bool
	// question holds what the executor of the work needs, and decision the answer; both are nil without an executor.
	question *executor.Question
	decision *executor.Decision
}

// input is everything that a plan depends on.
type input struct {
	now time.Time
	// owner is the UID of the AppliedManifestWork; empty while there is none.
	owner     types.UID
	manifests []manifest.Manifest
	// raw has the bytes of each manifest, objects what is known of its object.
	raw     [][]byte
	objects []object
	// session asks about the executor of the work; nil when there is none.
	session *executor.Session
}

// plan holds what a pass does about its manifests. A manifest that the executor must check again for an escalation of
// permissions, right before it is applied, is planned again with that decision.
type plan struct {
	in *input
	// steps has one step for each manifest.
	steps []apply.Step
	// ranks are the indexes of the steps, in the order of applying; the steps of one rank are independent.
	ranks [][]int
	// record are the objects that the plan may create. They are recorded before the first step.
	record []workv1.AppliedManifestResourceMeta
}

// phase says what a pass does.
type phase int

const (
	// phaseGone: there is no work; the evictor cares for what it left.
	phaseGone phase = iota
	// phaseAbandon: the work vanished while its objects were created; they are deleted at once.
	phaseAbandon
	// phaseStale: a cache must catch up first, or the hub must answer.
	phaseStale
	// phaseDelete: the work is being deleted.
	phaseDelete
	// phaseRestart: the work lives, but its AppliedManifestWork is being deleted; its objects go before they come again.
	phaseRestart
	// phaseApply: the objects are brought to the desired state.
	phaseApply
	// phaseKeep: it is not known whether the hub has the work as the cache does; its objects are kept.
	phaseKeep
	// phaseUnknown: the hub is away and there is no copy of the work that can be used.
	phaseUnknown
	// phaseOffline: the hub is away; the objects are kept as the copy of the work says.
	phaseOffline
)

// String names the phase in metrics.
func (p phase) String() string {
	switch p {
	case phaseGone:
		return "gone"
	case phaseAbandon:
		return "abandon"
	case phaseStale:
		return "stale"
	case phaseDelete:
		return "release"
	case phaseRestart:
		return "drain"
	case phaseApply:
		return "apply"
	case phaseKeep:
		return "keep"
	case phaseOffline:
		return "offline"
	case phaseUnknown:
	}
	return "unknown"
}
