package approve

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// boundGroupPrefix is the prefix of the group that binds a bootstrap credential to the cluster whose name follows. A
	// bootstrap token names it in auth-extra-groups.
	boundGroupPrefix = "system:bootstrappers:managedcluster:"
	// boundAccountPrefix is the prefix of the user name of the ServiceAccount that is bound to the cluster whose name
	// follows. A ServiceAccount cannot have groups of its own.
	boundAccountPrefix = "system:serviceaccount:" + names.NamespaceBootstrap + ":" + names.ServiceAccountBootstrap + "."
)

// Trust selects the requests for a first credential of a cluster that need no person. The zero value selects none.
type Trust struct {
	// Users are the users that are trusted; exact names.
	Users []string
	// Joined extends the trust in Users to clusters that have joined before.
	Joined bool
	// Bound trusts every bootstrap credential that is bound to the cluster that it asks for, also one that has joined
	// before.
	Bound bool
}

// Empty reports whether nobody is trusted.
func (t Trust) Empty() bool { return len(t.Users) == 0 && !t.Bound }

// Names reports whether t trusts the requester of request with a first credential of some cluster. JudgeCluster
// decides about the cluster in question.
func (t Trust) Names(request *certificatesv1.CertificateSigningRequest) bool {
	return t.trustsUser(request.Spec.Username) ||
		(t.Bound && len(boundClusters(request.Spec.Username, request.Spec.Groups)) > 0)
}

func (t Trust) trustsUser(user string) bool { return user != "" && slices.Contains(t.Users, user) }

// boundClusters returns the clusters that a user with these groups is bound to, sorted. A user who is bound to none may
// ask for any; one who is bound to some may ask for these and no others. The policy in
// manifests/hub/policies/bootstrap.yaml follows the same rule.
func boundClusters(user string, groups []string) []string {
	var clusters []string
	if cluster, ok := strings.CutPrefix(user, boundAccountPrefix); ok {
		clusters = append(clusters, cluster)
	}
	for _, group := range groups {
		if cluster, ok := strings.CutPrefix(group, boundGroupPrefix); ok {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// HasJoined reports whether an agent of the cluster has used a credential of the cluster. The condition is written with
// that credential or by an administrator. A cluster that is nil, or was deleted and created again, has not joined.
func HasJoined(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}
