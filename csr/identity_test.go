package csr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesOfTheProtocol(t *testing.T) {
	tests := map[string]struct{ have, want string }{
		"the user of a cluster":            {ClusterUser("c1", "a1"), "system:open-cluster-management:c1:a1"},
		"the group of a cluster":           {ClusterGroup("c1"), "system:open-cluster-management:c1"},
		"the group of a cluster in clouds": {ClusterGroupIAM("c1"), "open-cluster-management:c1"},
		"the user of an add-on":            {AddonUser("c1", "hello", "x"), "system:open-cluster-management:cluster:c1:addon:hello:agent:x"},
		"the group of an add-on here":      {AddonGroups("c1", "hello")[0], "system:open-cluster-management:cluster:c1:addon:hello"},
		"the group of an add-on anywhere":  {AddonGroups("c1", "hello")[1], "system:open-cluster-management:addon:hello"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.have) })
	}
}

func TestParseClusterUser(t *testing.T) {
	tests := map[string]struct {
		user string
		want Identity
		ok   bool
	}{
		"the user of a cluster is read":      {ClusterUser("c1", "a1"), Identity{Cluster: "c1", Agent: "a1"}, true},
		"the group of all clusters is none":  {GroupManagedClusters, Identity{}, false},
		"the user of an add-on is none":      {AddonUser("c1", "hello", "hello"), Identity{}, false},
		"no agent is none":                   {subjectPrefix + "c1:", Identity{}, false},
		"no cluster is none":                 {subjectPrefix + ":a1", Identity{}, false},
		"three parts are none":               {subjectPrefix + "c1:a1:x", Identity{}, false},
		"another prefix is none":             {"open-cluster-management:c1:a1", Identity{}, false},
		"a prefix that goes on is no prefix": {"xsystem:open-cluster-management:c1:a1", Identity{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseClusterUser(tc.user)
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.want, got)
		})
	}
}

func FuzzParseUsers(f *testing.F) {
	f.Add("system:open-cluster-management:c1:a1")
	f.Add("system:open-cluster-management:cluster:c1:addon:hello:agent:hello")
	f.Add("system:open-cluster-management:cluster::addon::agent:")
	f.Fuzz(func(t *testing.T, user string) {
		cluster, isCluster := ParseClusterUser(user)
		addon, isAddon := ParseAddonUser(user)
		if isCluster && ClusterUser(cluster.Cluster, cluster.Agent) != user {
			t.Errorf("%q was read as cluster %+v", user, cluster)
		}
		if isAddon && AddonUser(addon.Cluster, addon.Addon, addon.Agent) != user {
			t.Errorf("%q was read as add-on %+v", user, addon)
		}
		if isCluster && isAddon {
			t.Errorf("%q is both a cluster and an add-on", user)
		}
	})
}

// FuzzUsersRoundTrip builds the user names of agents from any parts: where a part holds what separates parts, the name
// is read as that of nobody else.
func FuzzUsersRoundTrip(f *testing.F) {
	f.Add("c1", "hello", "a")
	f.Add("cluster", "addon", "agent")
	f.Add("c1:a", "b:addon:c", "")
	f.Fuzz(func(t *testing.T, cluster, addon, agent string) {
		plain := func(parts ...string) bool {
			for _, part := range parts {
				if part == "" || strings.Contains(part, ":") {
					return false
				}
			}
			return true
		}
		id, ok := ParseClusterUser(ClusterUser(cluster, agent))
		require.Equal(t, plain(cluster, agent), ok && id == Identity{Cluster: cluster, Agent: agent})
		addonID, ok := ParseAddonUser(AddonUser(cluster, addon, agent))
		if plain(cluster, addon, agent) {
			require.True(t, ok)
			require.Equal(t, AddonIdentity{Cluster: cluster, Addon: addon, Agent: agent}, addonID)
		}
		if ok {
			require.Equal(t, AddonUser(cluster, addon, agent),
				AddonUser(addonID.Cluster, addonID.Addon, addonID.Agent))
		}
	})
}
