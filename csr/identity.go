package csr

import "strings"

const (
	// subjectPrefix starts every user and group of the protocol, those of GroupIAM aside.
	subjectPrefix = "system:open-cluster-management:"
	// iamPrefix starts the group that cloud identity providers give to a cluster.
	iamPrefix = "open-cluster-management:"
	// addonPrefix starts the users and groups of add-on agents, behind subjectPrefix.
	addonPrefix = "cluster:"
)

// GroupManagedClusters is the group that every cluster belongs to.
const GroupManagedClusters = "system:open-cluster-management:managed-clusters"

// Identity is the identity of an agent of a cluster, as in its user name.
type Identity struct {
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Agent distinguishes several agents of one cluster.
	Agent string
}

// AddonIdentity is the identity of an agent of an add-on, as in its user name.
type AddonIdentity struct {
	// Cluster is the name of the ManagedCluster.
	Cluster string
	// Addon is the name of the ManagedClusterAddOn.
	Addon string
	// Agent distinguishes several agents of one add-on.
	Agent string
}

// ClusterUser returns the user name of a cluster's agent.
func ClusterUser(cluster, agent string) string { return subjectPrefix + cluster + ":" + agent }

// ClusterGroup returns the group of all agents of one cluster.
func ClusterGroup(cluster string) string { return subjectPrefix + cluster }

// ClusterGroupIAM returns the group of one cluster whose agent was identified by a cloud provider.
func ClusterGroupIAM(cluster string) string { return iamPrefix + cluster }

// ParseClusterUser is the way back from ClusterUser; false when user is not a user name of a cluster's agent.
func ParseClusterUser(user string) (Identity, bool) {
	rest, ok := strings.CutPrefix(user, subjectPrefix)
	if !ok {
		return Identity{}, false
	}
	parts := strings.Split(rest, ":")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return Identity{}, false
	}
	return Identity{Cluster: parts[0], Agent: parts[1]}, true
}

// AddonUser returns the user name of an add-on's agent.
func AddonUser(cluster, addon, agent string) string {
	return addonGroup(cluster, addon) + ":agent:" + agent
}

// AddonGroups returns the two groups that the agent of an add-on belongs to by default: the one of the add-on on this
// cluster and the one of the add-on on all clusters.
func AddonGroups(cluster, addon string) []string {
	return []string{addonGroup(cluster, addon), subjectPrefix + "addon:" + addon}
}

// ParseAddonUser is the way back from AddonUser; false when user is not a user name of an add-on's agent.
func ParseAddonUser(user string) (AddonIdentity, bool) {
	rest, ok := strings.CutPrefix(user, subjectPrefix+addonPrefix)
	if !ok {
		return AddonIdentity{}, false
	}
	parts := strings.Split(rest, ":")
	if len(parts) != 5 || parts[1] != "addon" || parts[3] != "agent" {
		return AddonIdentity{}, false
	}
	id := AddonIdentity{Cluster: parts[0], Addon: parts[2], Agent: parts[4]}
	if id.Cluster == "" || id.Addon == "" || id.Agent == "" {
		return AddonIdentity{}, false
	}
	return id, true
}

// addonGroup is the group of one add-on on one cluster.
func addonGroup(cluster, addon string) string {
	return subjectPrefix + addonPrefix + cluster + ":addon:" + addon
}
