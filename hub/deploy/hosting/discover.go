package hosting

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// hosted is the value of names.AnnotationInstallMode that asks for a hosting cluster.
	hosted = "Hosted"
	// discovered is the value of names.AnnotationHostManagedBy of a hosting cluster that the hub found.
	discovered = "auto-discovery"
	// enabled is the mode with which the hub finds hosting clusters for an add-on.
	enabled = "Enable"
)

// Claimed returns the cluster on which the agent of a cluster runs, as that says by its reserved claim; empty when it
// does not say so. Nil is a cluster that does not exist.
func Claimed(cluster *clusterv1.ManagedCluster) string {
	if cluster == nil {
		return ""
	}
	for _, claim := range cluster.Status.ClusterClaims {
		if claim.Name == names.ClaimHostingCluster {
			return claim.Value
		}
	}
	return ""
}

// Asks reports whether an add-on asks the hub to find its hosting cluster. Its owner allows that or not (Allows).
func Asks(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return addOn.DeletionTimestamp.IsZero() && addOn.Annotations[names.AnnotationInstallMode] == hosted &&
		addOn.Annotations[names.AnnotationHostingCluster] == ""
}

// Allows reports whether the owner of an add-on allows the hub to find hosting clusters. mode is
// spec.hostedModeAutoDiscovery.mode, and empty where that is not set: then the annotation counts, and never against the
// field.
func Allows(cma *addonv1beta1.ClusterManagementAddOn, mode string) bool {
	return cmp.Or(mode, cma.Annotations[names.AnnotationAutoDiscovery]) == enabled
}

// Differs reports whether the agent of a cluster runs on another cluster than the one that an add-on names. What the
// cluster does not say counts for nothing.
func Differs(addOn *addonv1beta1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) bool {
	claimed, named := Claimed(cluster), addOn.Annotations[names.AnnotationHostingCluster]
	return claimed != "" && named != "" && claimed != named && addOn.DeletionTimestamp.IsZero()
}

// Search is what is known of the hosting cluster that an add-on asks for.
type Search struct {
	Cluster *clusterv1.ManagedCluster
	// Host is the cluster that Cluster claims; nil when that does not exist.
	Host *clusterv1.ManagedCluster
	// Sets are all cluster sets, and Unread is why they are not known.
	Sets   []*clusterv1beta2.ManagedClusterSet
	Unread error
}

// Find returns the hosting cluster, or why there is none yet, with a remedy. The cluster chooses it by its claim, so it
// must be in a set with that cluster, which an administrator made, and consent by its list
// (docs/reference/hub.md, "Hosting clusters that the hub finds").
func (r Rules) Find(s Search) (host, pending string) {
	name, of := Claimed(s.Cluster), s.Cluster.Name
	switch {
	case name == "":
		return "", fmt.Sprintf("Cluster %s does not say on which cluster its agent runs (claim %s). Set "+
			"spec.deployOption.reportHostingCluster of its Klusterlet to Enable, or --report-hosting-cluster and "+
			"--hosting-cluster-name of its agent, or name the cluster by annotation %s.", of, names.ClaimHostingCluster,
			names.AnnotationHostingCluster)
	case s.Host == nil:
		return "", fmt.Sprintf("Cluster %s says that its agent runs on cluster %q, which is not a ManagedCluster of this "+
			"hub. Register that cluster, or correct the claim %s.", of, name, names.ClaimHostingCluster)
	case !s.Host.DeletionTimestamp.IsZero() || !s.Cluster.DeletionTimestamp.IsZero():
		return "", fmt.Sprintf("Cluster %s or %s, on which its agent runs, is being deleted.", of, name)
	case s.Unread != nil:
		return "", fmt.Sprintf("The ManagedClusterSets, one of which must have clusters %s and %s, cannot be read: %v", of,
			name, s.Unread)
	case !s.shareSet():
		return "", fmt.Sprintf("Cluster %s says that its agent runs on cluster %s, and no ManagedClusterSet besides %s and "+
			"%s has both. Put them into one, or name the cluster by annotation %s.", of, name, clustersets.Default,
			clustersets.Global, names.AnnotationHostingCluster)
	case !r.consents(s.Host, of, true):
		return "", fmt.Sprintf("Cluster %s says that its agent runs on cluster %s, which does not consent to host its "+
			"add-ons. An administrator who may accept cluster %s consents by its annotation %s: kubectl annotate "+
			"managedcluster %s --overwrite %s=%s", of, name, name, names.AnnotationHosts, name,
			names.AnnotationHosts, Listing(s.Host, of))
	}
	return name, ""
}

// shareSet reports whether a set that an administrator made has both clusters. A set that goes, and one with a selector
// that cannot be used, have none.
func (s Search) shareSet() bool {
	return slices.ContainsFunc(s.Sets, func(set *clusterv1beta2.ManagedClusterSet) bool {
		if set.Name == clustersets.Default || set.Name == clustersets.Global || !set.DeletionTimestamp.IsZero() {
			return false
		}
		selector, err := clustersets.Selector(set.Name, set)
		return err == nil && selector.Matches(labels.Set(s.Cluster.Labels)) && selector.Matches(labels.Set(s.Host.Labels))
	})
}

// Renames reports whether an add-on gets the hosting cluster that was found for it, or loses one that the hub had found
// and that it does not ask for any more.
func Renames(addOn *addonv1beta1.ManagedClusterAddOn, found string) bool {
	return found != "" || addOn.Annotations[names.AnnotationHostManagedBy] == discovered &&
		addOn.Annotations[names.AnnotationInstallMode] != hosted && addOn.DeletionTimestamp.IsZero()
}

// Rename writes what Renames reports into an add-on.
func Rename(addOn *addonv1beta1.ManagedClusterAddOn, found string) {
	switch {
	case found != "":
		metav1.SetMetaDataAnnotation(&addOn.ObjectMeta, names.AnnotationHostingCluster, found)
		metav1.SetMetaDataAnnotation(&addOn.ObjectMeta, names.AnnotationHostManagedBy, discovered)
	case Renames(addOn, found):
		delete(addOn.Annotations, names.AnnotationHostingCluster)
		delete(addOn.Annotations, names.AnnotationHostManagedBy)
	}
}
