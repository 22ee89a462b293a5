package work

import (
	"slices"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// concludeStatus is the status of a work after a pass.
func concludeStatus(f *facts, results []apply.Result) workv1.ManifestWorkStatus {
	objects := make([]status.Object, len(results))
	for i := range results {
		r := &results[i]
		objects[i] = status.Object{
			Err: r.Err, Presence: r.Presence, ReadErr: r.ReadErr, Feedback: r.Feedback, Behind: r.Behind,
		}
	}
	return status.Conclude(f.work, f.manifests, objects, f.now)
}

// found holds what a pass learned for the list of applied resources.
func found(results []apply.Result) []inventory.Found {
	list := make([]inventory.Found, len(results))
	for i := range results {
		list[i] = inventory.Found{Presence: results[i].Presence, UID: results[i].UID, Final: results[i].Final}
	}
	return list
}

// outcomeOf is how the steps of a pass ended.
func outcomeOf(results []apply.Result) reconcile.Outcome {
	var outcome reconcile.Outcome
	for i := range results {
		if !results[i].Final {
			outcome = outcome.And(reconcile.FromError(results[i].Err))
		}
		outcome = outcome.And(reconcile.DoneUntil(results[i].Wake))
	}
	return outcome
}

// withoutUnserved are the manifests after a pass in which the API server turned out not to serve some kinds any more,
// and whether there are any.
func withoutUnserved(manifests []manifest.Manifest, results []apply.Result) ([]manifest.Manifest, bool) {
	if !slices.ContainsFunc(results, func(r apply.Result) bool { return r.Unserved }) {
		return manifests, false
	}
	after := slices.Clone(manifests)
	for i := range results {
		if results[i].Unserved {
			after[i] = after[i].Unserve()
		}
	}
	return after, true
}

// thaw wakes the work again when a manifest that was frozen in this pass is not frozen by the new status: only the
// status of the work itself changes then, which wakes nobody.
func thaw(work *workv1.ManifestWork, steps []apply.Step, after workv1.ManifestWorkStatus, now time.Time,
) reconcile.Outcome {
	next := &workv1.ManifestWork{ObjectMeta: work.ObjectMeta, Status: after}
	for i := range steps {
		if steps[i].Frozen && !status.Frozen(next, steps[i].Manifest, &after.ResourceStatus.Manifests[i]) {
			return reconcile.DoneUntil(now)
		}
	}
	return reconcile.Done()
}
