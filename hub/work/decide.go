package work

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// LabelReplicaSet marks the works of a ManifestWorkReplicaSet, which another controller deletes
// (docs/reference/work.md, "Annotations and labels").
const LabelReplicaSet = "work.open-cluster-management.io/manifestworkreplicaset"

// finished is a completed work with a time to live.
type finished struct {
	uid     types.UID
	version string
	// due is when it is deleted.
	due time.Time
}

// finishedOf returns when a work is to be deleted; nil when it stays.
func finishedOf(work *workv1.ManifestWork) *finished {
	option := work.Spec.DeleteOption
	if option == nil || option.TTLSecondsAfterFinished == nil || !work.DeletionTimestamp.IsZero() {
		return nil
	}
	if _, replica := work.Labels[LabelReplicaSet]; replica {
		return nil
	}
	complete := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkComplete)
	if complete == nil || complete.Status != metav1.ConditionTrue {
		return nil
	}
	// A condition without a generation is about the present one.
	if complete.ObservedGeneration != 0 && complete.ObservedGeneration != work.Generation {
		return nil
	}
	since := complete.LastTransitionTime.Time
	if created := work.CreationTimestamp.Time; since.Before(created) {
		since = created // The clock of the agent is behind, and nothing is complete before it exists.
	}
	return &finished{
		uid: work.UID, version: work.ResourceVersion, due: since.Add(seconds(*option.TTLSecondsAfterFinished)),
	}
}

// seconds converts a number of seconds that the API does not bound.
func seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(n, 0), most)) * time.Second
}
