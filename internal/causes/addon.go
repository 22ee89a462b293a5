package causes

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// ReasonClusterSilent is the reason of a condition Available that the hub set to Unknown because the heartbeat of the
// cluster stopped; it is that of the API module of OCM.
const ReasonClusterSilent = "ManagedClusterLeaseUpdateStopped"

// BlockingConditions are the conditions that explain with False why an add-on does not work, the most informative
// first, which is Configured.
func BlockingConditions() []string {
	return []string{
		addonv1beta1.ManagedClusterAddOnConditionConfigured,
		addonv1beta1.ManagedClusterAddOnHostingClusterValidity,
		addonv1beta1.ManagedClusterAddOnRegistrationApplied,
		token.ConditionInfrastructure, names.ConditionCertificateRotated, token.ConditionRefreshed,
		addonv1beta1.ManagedClusterAddOnManifestApplied,
		addonv1beta1.ManagedClusterAddOnHostingManifestApplied,
		names.ConditionWorkloadsReady,
		addonv1beta1.ManagedClusterAddOnConditionAvailable,
	}
}

// FirstFalse returns the first condition of some types that is False, and since when one of them has been; nil when
// none is.
func FirstFalse(conditions []metav1.Condition, types []string) (*metav1.Condition, time.Time) {
	var best *metav1.Condition
	var since time.Time
	for _, kind := range types {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		if best == nil {
			best = c
		}
		// An agent may leave the time out, which says nothing of the others.
		if at := c.LastTransitionTime.Time; !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return best, since
}

// Silent returns the condition Available of an add-on that the hub set to Unknown because it lost the cluster; nil for
// any other.
func Silent(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c == nil || c.Reason != ReasonClusterSilent {
		return nil
	}
	return c
}

// Completed reports whether the desired configuration of an add-on is in force.
func Completed(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	return c != nil && c.Reason == addonv1beta1.ProgressingReasonCompleted
}

// AddOn is what the first cause of a ManagedClusterAddOn is judged by.
type AddOn struct {
	Conditions []metav1.Condition
	// Deleting reports whether the add-on is being deleted.
	Deleting bool
}

// Cause is the first cause of the trouble of an object.
type Cause struct {
	// Code is stable, see Codes.
	Code Code
	// Condition is the condition that says it; nil where the absence of one does.
	Condition *metav1.Condition
	// Since is when it began; zero where nothing says that.
	Since time.Time
}

// OfAddOn returns the first cause why an add-on does not work; nil when it works.
func OfAddOn(a AddOn) *Cause {
	if a.Deleting {
		return ofDeletion(a.Conditions)
	}
	kinds := BlockingConditions()
	waits := Waits(a.Conditions)
	if waits != nil {
		kinds = kinds[1:] // Configured comes first.
	}
	if c, since := FirstFalse(a.Conditions, kinds); c != nil {
		return &Cause{Code: ofCondition(c), Condition: c, Since: since}
	}
	if c := Silent(a.Conditions); c != nil {
		return &Cause{Code: ClusterSilent, Condition: c, Since: c.LastTransitionTime.Time}
	}
	if failed := caseOf(a.Conditions, names.ConditionRolloutFailed, metav1.ConditionTrue, RolloutFailed); failed != nil {
		return failed
	}
	cause := ofAvailable(a.Conditions)
	if cause != nil && waits != nil { // It has no configuration yet that it could keep.
		return &Cause{Code: ConfigurationKept, Condition: waits, Since: waits.LastTransitionTime.Time}
	}
	return cause
}

// ofAvailable returns why an add-on without a condition that is False is not Available; nil when it is.
func ofAvailable(conditions []metav1.Condition) *Cause {
	available := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	on := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	waiting := on != nil && strings.HasPrefix(on.Reason, "WaitingFor")
	switch {
	case available != nil && available.Status == metav1.ConditionTrue:
		return nil
	case waiting:
		return &Cause{Code: ManifestsAwaited, Condition: on, Since: on.LastTransitionTime.Time}
	case available != nil:
		return &Cause{Code: ofCondition(available), Condition: available, Since: available.LastTransitionTime.Time}
	case len(conditions) == 0:
		return &Cause{Code: AddOnUnmanaged}
	}
	return &Cause{Code: HealthUnknown}
}

// ofDeletion returns what the deletion of an add-on waits for.
func ofDeletion(conditions []metav1.Condition) *Cause {
	for _, kind := range []string{names.ConditionAddOnDeleting, addonv1beta1.ManagedClusterAddOnHookManifestCompleted} {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		code := DeletionWaits
		if c.Reason == "HookFailed" || c.Reason == "HookDeadlineExceeded" {
			code = HookFailed
		}
		return &Cause{Code: code, Condition: c, Since: c.LastTransitionTime.Time}
	}
	return &Cause{Code: DeletionWaits}
}
