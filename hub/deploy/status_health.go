package deploy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
)

// healthOf returns the condition Available of the add-on from its works on one side; false when it stays as it is. The
// works are those of the hosting cluster in hosted mode, and otherwise those of the managed cluster. While the hub has
// lost the managed cluster, hub/cluster writes the condition.
func healthOf(f facts, own []*workv1.ManifestWork) (metav1.Condition, bool) {
	if f.setupErr != nil || !health.ByWorks(f.setup.Health) || clusterSilent(f.cluster) ||
		(len(own) == 0 && f.renderErr != nil) {
		return metav1.Condition{}, false
	}
	judged := health.Judge(health.Subject{Setup: f.setup, Cluster: f.cluster, AddOn: f.addOn}, healthWorks(own))
	return withCause(judged, f.addOn.Status.Conditions), true
}

// healthWorks reads the objects of works. A manifest that cannot be read is left out.
func healthWorks(own []*workv1.ManifestWork) []health.Work {
	all := make([]health.Work, 0, len(own))
	for _, work := range own {
		w := health.Work{ManifestWork: work}
		for i := range work.Spec.Workload.Manifests {
			if s, err := works.Glance(&work.Spec.Workload.Manifests[i]); err == nil {
				w.Objects = append(w.Objects, healthObject(s))
			}
		}
		all = append(all, w)
	}
	return all
}

// healthObject returns the part of a manifest that the health of its object depends on.
func healthObject(s works.Stored) health.Object {
	return health.Object{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Replicas: s.Replicas}
}

// healthMode returns the mode of the health check in the status of an add-on; false when it stays as it is.
func healthMode(probe addon.HealthProbe) (addonv1beta1.HealthCheckMode, bool) {
	switch {
	case probe == addon.HealthLease:
		return addonv1beta1.HealthCheckModeLease, true
	case probe == addon.HealthCustom, health.ByWorks(probe):
		return addonv1beta1.HealthCheckModeCustomized, true
	}
	return "", false
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

// reasonNotConsented means that the hosting cluster does not host the add-ons of the managed cluster. It is Spokelet's
// own addition.
const reasonNotConsented = "NotConsented"

const (
	// reasonHostPending means that no hosting cluster is found yet for an add-on that asks for one, reasonHostDiffers that
	// the agent of the cluster runs elsewhere. OCM's API has both since 1.4; api v1.3.0 does not.
	reasonHostPending = "HostingClusterAutoDiscoveryPending"
	reasonHostDiffers = "HostingClusterMismatch"
	// remedyDiffers ends the message about an agent that runs elsewhere.
	remedyDiffers = ", and the add-on stays unavailable, because its Lease is looked for where the agent of the cluster " +
		"runs. Delete the add-on and name that cluster, or correct the claim."
	// lookForHost is how often a hosting cluster is looked for.
	lookForHost = time.Minute
)

// differs begins the message about an agent that runs elsewhere.
func differs(f facts) string {
	return fmt.Sprintf("Annotation %s names cluster %s, and cluster %s says that its agent runs on cluster %q (claim %s)",
		names.AnnotationHostingCluster, hostName(f), f.addOn.Namespace, hosting.Claimed(f.cluster), names.ClaimHostingCluster)
}

// concludeHost sets the condition on the hosting cluster of the add-on (docs/reference/hub.md, "Hosted add-ons"). It is
// removed with the annotation.
func concludeHost(f facts, conditions *[]metav1.Condition, set func(metav1.Condition)) {
	name := hostName(f)
	if name == "" && f.pendingHost == "" {
		meta.RemoveStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnHostingClusterValidity)
		return
	}
	c := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnHostingClusterValidity, Status: metav1.ConditionFalse,
		Reason: addonv1beta1.HostingClusterValidityReasonInvalid,
	}
	switch hostOf(f) {
	case hostNone:
	case hostPending:
		c.Reason, c.Message = reasonHostPending, f.pendingHost
	case hostMissing:
		c.Message = fmt.Sprintf("There is no ManagedCluster %q, which annotation %s names as the hosting cluster. "+
			"Correct the annotation, or register that cluster.", name, names.AnnotationHostingCluster)
	case hostDeleting:
		c.Message = fmt.Sprintf("ManagedCluster %s, which annotation %s names as the hosting cluster, is being deleted. "+
			"Name another one.", name, names.AnnotationHostingCluster)
	case hostRefused:
		c.Message = fmt.Sprintf("The hub does not accept cluster %s, which annotation %s names as the hosting cluster: its "+
			"works stay as they are. Set spec.hubAcceptsClient of the ManagedCluster to true, or name another one.", name,
			names.AnnotationHostingCluster)
	case hostUnwilling:
		c.Reason = reasonNotConsented
		c.Message = fmt.Sprintf("ManagedCluster %s, which annotation %s names as the hosting cluster, does not consent to "+
			"host add-ons of cluster %s: nothing is written there, and works there stay as they are. An administrator who may "+
			"accept cluster %s consents by its annotation %s, a list of clusters separated by commas or %q: kubectl annotate "+
			"managedcluster %s --overwrite %s=%s", name, names.AnnotationHostingCluster, f.addOn.Namespace, name,
			names.AnnotationHosts, hosting.Everyone, name, names.AnnotationHosts, hosting.Listing(f.host, f.addOn.Namespace))
	case hostDiffers:
		c.Reason, c.Message = reasonHostDiffers, differs(f)+": nothing is written there"+remedyDiffers
	case hostReady:
		if hosting.Differs(f.addOn, f.cluster) {
			c.Reason, c.Message = reasonHostDiffers, differs(f)+": what is there stays"+remedyDiffers
			break
		}
		c.Status, c.Reason = metav1.ConditionTrue, addonv1beta1.HostingClusterValidityReasonValid
		c.Message = fmt.Sprintf("The hub accepts hosting cluster %s.", name)
		if hosting.Claimed(f.cluster) != "" {
			c.Message = fmt.Sprintf("The hub accepts hosting cluster %s, and the agent of cluster %s runs there.", name,
				f.addOn.Namespace)
		}
	}
	set(c)
}
