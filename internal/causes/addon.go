package causes

import (
	"slices"
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
	// Hosted reports whether its agent runs on another cluster. OCM's hub leaves the conditions of that mode as they were
	// when an add-on leaves it; they say nothing any more then.
	Hosted bool
	// ClusterAlive reports that its cluster is known to be heard of. The hub sets Available to Unknown when it loses a
	// cluster, and nothing takes that back for an add-on that reports its health itself.
	ClusterAlive bool
}

// Hosted reports, by the annotations of an add-on, whether its agent runs on another cluster, or is to run there.
func Hosted(annotations map[string]string) bool {
	return annotations[names.AnnotationHostingCluster] != "" || annotations[names.AnnotationInstallMode] == modeHosted
}

// modeHosted is the value of the annotation with which an add-on asks for a hosting cluster.
const modeHosted = "Hosted"

// Cause is the first cause of the trouble of an object.
type Cause struct {
	// Code is stable, see Codes.
	Code Code
	// Condition is the condition that says it; nil where the absence of one does.
	Condition *metav1.Condition
	// Since is when it began; zero where nothing says that.
	Since time.Time
}

// OfAddOn returns the first cause why an add-on does not work; nil when it works. What a cluster said last before the
// hub lost it is the last that is known, and does not explain why it is silent.
func OfAddOn(a AddOn) *Cause {
	cause := a.first()
	silent := Silent(a.Conditions)
	switch {
	case cause == nil:
		return nil
	case silent != nil && !a.ClusterAlive && cause.OnCluster():
		return &Cause{Code: ClusterSilent, Condition: silent, Since: silent.LastTransitionTime.Time}
	case cause.Code == ClusterSilent:
		cause.Code = HealthUnknown
	}
	return cause
}

// first returns the first cause, whether the cluster is silent or not. The rules stand in the order in which they
// count: its configuration, what comes after that on the way to what runs, the rollout, and its health.
func (a AddOn) first() *Cause {
	if a.Deleting {
		return ofDeletion(a.Conditions)
	}
	for _, rule := range []func() *Cause{a.ofConfiguration, a.ofFalse, a.ofRollout, a.ofAvailable} {
		if found := rule(); found != nil {
			return found
		}
	}
	return nil
}

// ofConfiguration returns that an add-on has a configuration that it does not support, which OCM's hub says in
// Progressing alone. That it cannot be used for another reason is said by Configured, which ofFalse judges.
func (a AddOn) ofConfiguration() *Cause {
	configured := meta.FindStatusCondition(a.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	on := meta.FindStatusCondition(a.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	if on == nil || on.Reason != addonv1beta1.ProgressingReasonConfigurationUnsupported ||
		configured != nil && configured.Status == metav1.ConditionFalse && Waits(a.Conditions) == nil {
		return nil
	}
	return &Cause{Code: ConfigurationKept, Condition: on, Since: on.LastTransitionTime.Time}
}

// ofFalse returns the first condition that is False. Configured is none of them while the add-on waits for its turn.
func (a AddOn) ofFalse() *Cause {
	kinds := slices.DeleteFunc(BlockingConditions(), func(kind string) bool {
		switch kind {
		case addonv1beta1.ManagedClusterAddOnConditionConfigured:
			return Waits(a.Conditions) != nil
		case addonv1beta1.ManagedClusterAddOnHostingClusterValidity,
			addonv1beta1.ManagedClusterAddOnHostingManifestApplied:
			return !a.Hosted
		}
		return false
	})
	c, since := FirstFalse(a.Conditions, kinds)
	if c == nil {
		return nil
	}
	return &Cause{Code: ofCondition(c), Condition: c, Since: since}
}

// ofRollout returns that a rollout counts the add-on as failed. A silent cluster comes before that.
func (a AddOn) ofRollout() *Cause {
	if Silent(a.Conditions) != nil && !a.ClusterAlive {
		return nil
	}
	return caseOf(a.Conditions, names.ConditionRolloutFailed, metav1.ConditionTrue, RolloutFailed)
}

// ofAvailable returns why an add-on without a condition that is False is not Available; nil when it is.
func (a AddOn) ofAvailable() *Cause {
	cause, waits := healthOf(a.Conditions), Waits(a.Conditions)
	if cause == nil || waits == nil || Silent(a.Conditions) != nil {
		return cause
	}
	// It has no configuration yet that it could keep.
	return &Cause{Code: ConfigurationKept, Condition: waits, Since: waits.LastTransitionTime.Time}
}

// healthOf returns why an add-on is not Available; nil when it is.
func healthOf(conditions []metav1.Condition) *Cause {
	available := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	on := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	waiting := on != nil && strings.HasPrefix(on.Reason, "WaitingFor")
	switch {
	case available != nil && available.Status == metav1.ConditionTrue:
		return nil
	case waiting && Silent(conditions) == nil:
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
		if c.Reason == reasonHookFailed || c.Reason == reasonHookDeadline {
			code = HookFailed
		}
		return &Cause{Code: code, Condition: c, Since: c.LastTransitionTime.Time}
	}
	return &Cause{Code: DeletionWaits}
}
