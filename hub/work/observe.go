package work

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// LabelReplicaSet marks the works of a ManifestWorkReplicaSet, which are not ours to delete (contract, work 5.4).
const LabelReplicaSet = "work.open-cluster-management.io/manifestworkreplicaset"

// finished is a work that is complete and is not to stay.
type finished struct {
	uid     types.UID
	version string
	// due is when it is to go.
	due time.Time
}

// finishedOf reads from a work whether and when it is to go; nil when it is to stay.
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
	// Who writes conditions without a generation means the present one.
	if complete.ObservedGeneration != 0 && complete.ObservedGeneration != work.Generation {
		return nil
	}
	return &finished{
		uid: work.UID, version: work.ResourceVersion,
		due: complete.LastTransitionTime.Add(seconds(*option.TTLSecondsAfterFinished)),
	}
}

// seconds is a time that the API does not bound, in what we can count.
func seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(min(max(n, 0), most)) * time.Second
}
