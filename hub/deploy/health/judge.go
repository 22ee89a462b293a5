package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/message"
)

// Work is a ManifestWork with its objects.
type Work struct {
	*workv1.ManifestWork
	// Objects are the objects of its manifests.
	Objects []Object
}

// ByWorks reports whether a probe judges the works of an add-on. The health of every other add-on is written by its
// agent, or by the add-on itself.
func ByWorks(probe addon.HealthProbe) bool {
	switch probe {
	case addon.HealthWork, addon.HealthDeployments, addon.HealthWorkloads:
		return true
	case addon.HealthUnchanged, addon.HealthLease, addon.HealthCustom:
	}
	return false
}

// Subject is the add-on whose health is judged, and how.
type Subject struct {
	// Setup has the probe.
	Setup addon.Setup
	// Cluster and AddOn are handed to the check of an author.
	Cluster *clusterv1.ManagedCluster
	AddOn   *addonv1beta1.ManagedClusterAddOn
}

// Judge returns the condition Available of an add-on from its works. Their feedback counts only when all of them are
// available.
func Judge(s Subject, works []Work) metav1.Condition {
	if len(works) == 0 {
		return available(metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonWorkNotFound,
			"The add-on has no ManifestWork.")
	}
	for _, work := range works {
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
	if s.Setup.Health == addon.HealthWork {
		return judgeFields(s, works)
	}
	return judgeWorkloads(s.Setup.Health, works)
}

// judgeWorkloads judges the workloads among the objects. One of which nothing is known makes the whole unknown, unless
// another is broken.
func judgeWorkloads(probe addon.HealthProbe, works []Work) metav1.Condition {
	var missing, bad []string
	for _, work := range works {
		for _, o := range work.Objects {
			w, judged := workloadOf(probe, o)
			if !judged {
				continue
			}
			values, _ := integers(o.id(w), work.ManifestWork)
			switch verdict, why := w.judge(values); verdict {
			case unknown:
				missing = append(missing, o.String())
			case broken:
				bad = append(bad, o.String()+" "+why)
			case fine:
			}
		}
	}
	switch {
	case len(bad) > 0:
		return available(metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable,
			"Not available: "+strings.Join(bad, "; ")+".")
	case len(missing) > 0:
		return noResult(missing)
	case probe == addon.HealthDeployments:
		return available(metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable,
			"All Deployments of the add-on are available.")
	}
	return available(metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable,
		"All Deployments, DaemonSets and StatefulSets of the add-on are available.")
}

// judgeFields judges by the probe of an author.
func judgeFields(s Subject, works []Work) metav1.Condition {
	probe := s.Setup.WorkProbe
	if probe == nil || (len(probe.Fields) == 0 && probe.Check == nil) {
		return available(metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonWorkApply,
			"All ManifestWorks of the add-on are available.")
	}
	request := addon.ProbeRequest{Cluster: s.Cluster, AddOn: s.AddOn}
	var selected []string
	for _, field := range probe.Fields {
		request.Results = append(request.Results, results(field, works)...)
		selected = append(selected, describe(field.ResourceIdentifier))
	}
	if len(selected) > 0 && len(request.Results) == 0 {
		return noResult(selected)
	}
	if probe.Check != nil {
		if err := probe.Check(request); err != nil {
			return available(metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable,
				"Not available: "+strings.TrimSuffix(err.Error(), ".")+".")
		}
	}
	return available(metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable,
		"The probe of the add-on passes.")
}

// results returns what is fed back about the objects that a field selects.
func results(field addon.ProbeField, works []Work) []addon.ProbeResult {
	var found []addon.ProbeResult
	for _, work := range works {
		for i := range work.Status.ResourceStatus.Manifests {
			m := &work.Status.ResourceStatus.Manifests[i]
			if id := idOf(m.ResourceMeta); matches(field.ResourceIdentifier, id) && len(m.StatusFeedbacks.Values) > 0 {
				found = append(found, addon.ProbeResult{ResourceIdentifier: id, Values: m.StatusFeedbacks.Values})
			}
		}
	}
	return found
}

// describe returns resource, namespace and name of what a field selects.
func describe(id workv1.ResourceIdentifier) string {
	text := id.Resource
	if id.Group != "" {
		text += "." + id.Group
	}
	return message.Object(text, id.Namespace, id.Name)
}

func noResult(about []string) metav1.Condition {
	return available(metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonNoProbeResult,
		"The cluster has not reported yet how these do: "+strings.Join(about, ", ")+".")
}

func available(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnConditionAvailable, Status: status, Reason: reason, Message: message,
	}
}
