package configure

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// Reasons of the condition Progressing that the API module does not name.
const (
	reasonWaitingForManifestApplied        = "WaitingForManifestApplied"
	reasonWaitingForHostingManifestApplied = "WaitingForHostingManifestApplied"
)

// messageCompleted is the message of Progressing of an add-on that has its configuration; scripts of OCM read it.
const messageCompleted = "completed with no errors."

// progress returns the condition Progressing for the configuration in references (docs/reference/hub.md,
// "Progressing"), from the other conditions of the add-on and its works. The first rule that matches wins.
func progress(
	addOn *addonv1beta1.ManagedClusterAddOn, conditions []metav1.Condition, works addon.Progress,
	references []addonv1beta1.ConfigReference,
) metav1.Condition {
	for _, config := range addOn.Spec.Configs {
		if addonconfig.SupportOf(addOn, config.ConfigGroupResource) == addonconfig.NotSupported {
			return notProgressing(addonv1beta1.ProgressingReasonConfigurationUnsupported,
				"spec.configs asks for "+config.Group+"/"+config.Resource+", which this add-on does not support")
		}
	}
	if meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnManifestApplied) == nil {
		return notProgressing(reasonWaitingForManifestApplied, "waiting for the manifests of the add-on to be applied")
	}
	if addOn.Annotations[names.AnnotationHostingCluster] != "" &&
		meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnHostingManifestApplied) == nil {
		return notProgressing(reasonWaitingForHostingManifestApplied,
			"waiting for the manifests of the add-on to be applied on the hosting cluster")
	}
	if works.Err != nil {
		return notProgressing(addonv1beta1.ProgressingReasonFailed, works.Err.Error())
	}
	if works.Nothing && len(works.Works) == 0 {
		return notProgressing(addonv1beta1.ProgressingReasonCompleted, messageCompleted)
	}
	return progressOfWorks(works, references)
}

func progressOfWorks(p addon.Progress, references []addonv1beta1.ConfigReference) metav1.Condition {
	if len(p.Works) == 0 {
		return inProgress("progressing... no addon works")
	}
	differs := func(work *workv1.ManifestWork) bool { return !matches(work, references) }
	if slices.ContainsFunc(p.Works, differs) || !inOrder(p.Orders, references) {
		return inProgress("progressing... mca and work configs mismatch")
	}
	for _, work := range p.Works {
		if !ready(work) {
			return inProgress("progressing... work is not ready")
		}
	}
	return notProgressing(addonv1beta1.ProgressingReasonCompleted, messageCompleted)
}

// completed reports whether a condition says that the desired configuration is in place.
func completed(condition metav1.Condition) bool {
	return condition.Reason == addonv1beta1.ProgressingReasonCompleted
}

// matches reports whether a work was rendered from exactly the desired configuration, in any order.
func matches(work *workv1.ManifestWork, references []addonv1beta1.ConfigReference) bool {
	annotation, found := work.Annotations[names.AnnotationConfigSpecHash]
	if !found {
		return len(references) == 0
	}
	var have map[string]string
	if json.Unmarshal([]byte(annotation), &have) != nil {
		return false
	}
	want := confighash.Map(references)
	for _, hash := range want {
		if hash == "" {
			return false
		}
	}
	return maps.Equal(want, have)
}

// inOrder reports whether works were rendered from the desired order, as far as theirs is known. Programs of others and
// earlier versions do not note it, and what is not known holds no rollout.
func inOrder(orders []string, references []addonv1beta1.ConfigReference) bool {
	desired := confighash.OrderOf(references)
	return !slices.ContainsFunc(orders, func(order string) bool { return order != desired })
}

// ready reports whether the present generation of a work is applied and available.
func ready(work *workv1.ManifestWork) bool {
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		condition := meta.FindStatusCondition(work.Status.Conditions, kind)
		if condition == nil || condition.Status != metav1.ConditionTrue ||
			condition.ObservedGeneration != work.Generation {
			return false
		}
	}
	return true
}

// broken reports whether works say that they are not well. One that was written again, and that no agent has looked at
// since, does not say anything.
func broken(works addon.Progress) bool {
	rolling := len(works.RollingOut) > 0
	for _, work := range works.Works {
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			c := meta.FindStatusCondition(work.Status.Conditions, kind)
			if c != nil && c.Status != metav1.ConditionTrue && c.ObservedGeneration == work.Generation {
				return true
			}
		}
		rolling = rolling && ready(work) // Otherwise its pods are those of the generation before.
	}
	return rolling
}

func inProgress(message string) metav1.Condition {
	return metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionProgressing,
		Status:  metav1.ConditionTrue,
		Reason:  addonv1beta1.ProgressingReasonProgressing,
		Message: message,
	}
}

func notProgressing(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionProgressing,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: message,
	}
}
