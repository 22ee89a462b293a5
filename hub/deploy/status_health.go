package deploy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
)

// health returns the condition Available from the works of an add-on and their status feedback (docs/reference/hub.md,
// "Health").
func health(own []*workv1.ManifestWork) metav1.Condition {
	if len(own) == 0 {
		return available(metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonWorkNotFound,
			"The add-on has no ManifestWork.")
	}
	for _, work := range own {
		condition := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkAvailable)
		switch {
		case condition == nil:
			return available(metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonWorkNotApply,
				fmt.Sprintf("ManifestWork %s is not applied yet.", work.Name))
		case condition.Status == metav1.ConditionFalse:
			return available(metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonWorkNotApply,
				fmt.Sprintf("ManifestWork %s: %s", work.Name, condition.Message))
		}
	}
	var missing, broken []string
	for _, work := range own {
		for i := range work.Spec.Workload.Manifests {
			s, err := works.Read(&work.Spec.Workload.Manifests[i])
			if err != nil {
				continue
			}
			switch verdict, why := judge(s, work); verdict {
			case workloadUnknown:
				missing = append(missing, s.String())
			case workloadBroken:
				broken = append(broken, s.String()+" "+why)
			case workloadFine:
			}
		}
	}
	switch {
	case len(broken) > 0:
		return available(metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable,
			"Not available: "+strings.Join(broken, "; ")+".")
	case len(missing) > 0:
		return available(metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonNoProbeResult,
			"The cluster has not reported yet how these do: "+strings.Join(missing, ", ")+".")
	}
	return available(metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable,
		"All Deployments and DaemonSets of the add-on are available.")
}

func available(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnConditionAvailable, Status: status, Reason: reason, Message: message,
	}
}

// withCause adds the cause that the agent saw on the cluster to the health of an add-on whose workloads are not ready.
func withCause(health metav1.Condition, conditions []metav1.Condition) metav1.Condition {
	cause := meta.FindStatusCondition(conditions, names.ConditionWorkloadsReady)
	probed := health.Reason == addonv1beta1.AddonAvailableReasonProbeUnavailable ||
		health.Reason == addonv1beta1.AddonAvailableReasonNoProbeResult
	if probed && cause != nil && cause.Status == metav1.ConditionFalse {
		health.Message += " " + cause.Message
	}
	return health
}

// clusterSilent reports whether the hub has lost a cluster; hub/cluster then writes the health of its add-ons.
func clusterSilent(cluster *clusterv1.ManagedCluster) bool {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return condition != nil && condition.Status == metav1.ConditionUnknown
}

// verdict is the health of a workload.
type verdict int

const (
	workloadFine verdict = iota
	workloadUnknown
	workloadBroken
)

// judge returns the health of a workload from its status feedback. An object that is no workload is fine.
func judge(s works.Stored, work *workv1.ManifestWork) (verdict, string) {
	resource, probed := s.Probe()
	if !probed || s.Replicas == 0 {
		return workloadFine, ""
	}
	values := feedback(s.Identity, resource, work)
	if len(values) == 0 {
		return workloadUnknown, ""
	}
	if s.IsDeployment() {
		ready, replicas := values["ReadyReplicas"], values["Replicas"]
		if (ready != nil && *ready >= 1) || (replicas != nil && *replicas == 0) {
			return workloadFine, ""
		}
		return workloadBroken, fmt.Sprintf("has %s ready of %s pods", number(ready), number(replicas))
	}
	ready, wanted := values["NumberReady"], values["DesiredNumberScheduled"]
	if ready != nil && wanted != nil && *ready == *wanted {
		return workloadFine, ""
	}
	return workloadBroken, fmt.Sprintf("has %s ready of %s pods", number(ready), number(wanted))
}

func number(value *int64) string {
	if value == nil {
		return "unknown"
	}
	return fmt.Sprintf("%d", *value)
}

// feedback returns the integers that are fed back about an object, by name.
func feedback(id works.Identity, resource string, work *workv1.ManifestWork) map[string]*int64 {
	at := slices.IndexFunc(work.Status.ResourceStatus.Manifests, func(m workv1.ManifestCondition) bool {
		return m.ResourceMeta.Group == id.Group && m.ResourceMeta.Resource == resource &&
			m.ResourceMeta.Namespace == id.Namespace && m.ResourceMeta.Name == id.Name
	})
	if at < 0 {
		return nil
	}
	values := map[string]*int64{}
	for _, value := range work.Status.ResourceStatus.Manifests[at].StatusFeedbacks.Values {
		if value.Value.Type == workv1.Integer && value.Value.Integer != nil {
			values[value.Name] = value.Value.Integer
		}
	}
	return values
}
