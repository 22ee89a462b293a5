package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Everybody with a bootstrap credential may ask for the identity of a cluster that waits. check and why name one request,
// the latest, and their next command is approve cluster: a person who saw one request must not approve two, of two
// agents and two users, one of which is not that of the cluster.
func TestOnlyOneOfTwoAgentsIsApprovedForACluster(t *testing.T) {
	h := gate(t)
	stranger := asks(t, "store-201-stranger", "system:open-cluster-management:store-201:b",
		"system:open-cluster-management:store-201", "system:open-cluster-management:managed-clusters")
	part(stranger, "spec")["username"] = "system:serviceaccount:shop-7:joins"
	h.lists[pathRequests] = append(h.lists[pathRequests], stranger)
	got := plays(t, h, "approve", "cluster", "store-201")
	approved := 0
	for _, write := range h.written {
		if strings.Contains(write, "/approval") {
			approved++
		}
	}
	assert.LessOrEqual(t, approved, 1, "%s", got.out)
}
