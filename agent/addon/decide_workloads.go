package addon

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/unready"
)

// reasonNotReady is the reason of names.ConditionWorkloadsReady.
const reasonNotReady = "WorkloadNotReady"

// workloadsUnready returns the time since which the hub reports workloads of the add-on as not ready or without a
// probe result, and whether it does. Every hub that probes workloads uses these reasons.
func workloadsUnready(f facts) (time.Time, bool) {
	if f.addon == nil || healthFromLease(f) || f.clusterUnknown || !f.addon.DeletionTimestamp.IsZero() {
		return time.Time{}, false
	}
	c := meta.FindStatusCondition(f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c == nil || c.Status == metav1.ConditionTrue ||
		(c.Reason != addonv1beta1.AddonAvailableReasonProbeUnavailable &&
			c.Reason != addonv1beta1.AddonAvailableReasonNoProbeResult) {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// concludeWorkloads sets the condition that explains why workloads are not ready. It is removed when the cause is
// unknown, and stays before the first inspection.
func concludeWorkloads(f facts, conditions *[]metav1.Condition) {
	switch {
	case f.workloads == nil:
		return
	case *f.workloads == "":
		meta.RemoveStatusCondition(conditions, names.ConditionWorkloadsReady)
		return
	}
	reconcile.SetCondition(conditions, metav1.Condition{
		Type: names.ConditionWorkloadsReady, Status: metav1.ConditionFalse, Reason: reasonNotReady, Message: *f.workloads,
	}, f.now)
}

// targetOf returns the workload of a manifest; false for other objects.
func targetOf(raw []byte) (unready.Target, bool) {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &object) != nil || object.APIVersion != appsv1.SchemeGroupVersion.String() ||
		(object.Kind != unready.KindDeployment && object.Kind != unready.KindDaemonSet) {
		return unready.Target{}, false
	}
	return unready.Target{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}, true
}
