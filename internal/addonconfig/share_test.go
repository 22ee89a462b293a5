package addonconfig

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// Shows: security/watches-of-one-tenant
func TestOneTenantCannotTakeTheWatchesOfOthers(t *testing.T) {
	many := func(prefix string, n int) (all []addonv1beta1.AddOnConfig) {
		for i := range n {
			all = append(all, fixture.ConfigMap(fmt.Sprintf("%s-%04d", prefix, i)))
		}
		return all
	}
	fleet := []Named{{Configs: many("all", 900)}}
	for i := range 20 {
		cluster := fmt.Sprintf("c%02d", i)
		fleet = append(fleet, Named{Cluster: cluster, Configs: many(cluster, 8)})
	}
	for sentence, tc := range map[string]struct {
		named           []Named
		watched, beyond int
	}{
		"none":                          {nil, 0, 0},
		"kinds that everybody watches":  {[]Named{{Cluster: "a", Configs: []addonv1beta1.AddOnConfig{fixture.Template("t"), fixture.DeploymentConfig("d")}}}, 0, 0},
		"a cluster has its share":       {[]Named{{Cluster: "a", Configs: many("a", 64)}}, 8, 56},
		"and others keep theirs":        {[]Named{{Cluster: "a", Configs: many("a", 64)}, {Cluster: "b", Configs: many("b", 8)}}, 16, 56},
		"what all name counts once":     {[]Named{{Configs: many("x", 64)}, {Cluster: "a", Configs: many("x", 64)}}, 64, 0},
		"an entry counts once":          {[]Named{{Cluster: "a", Configs: append(many("x", 8), many("x", 8)...)}}, 8, 0},
		"what is beyond for one counts": {[]Named{{Cluster: "a", Configs: many("x", 10)}, {Cluster: "b", Configs: many("x", 10)}}, 10, 0},
		"a definition may name more":    {[]Named{{Configs: many("x", 900)}}, 900, 0},
		"an add-on leaves half":         {fleet, 1000, 60},
	} {
		t.Run(sentence, func(t *testing.T) {
			watched, beyond := shares(tc.named, mostOfAddOn(0), map[string]int{})
			assert.Len(t, watched, tc.watched)
			assert.Len(t, beyond, tc.beyond)
		})
	}
}

// A fleet of 3,000 clusters, each with its own ConfigMap, is watched where an administrator asks for it.
//
// Shows: hub/watched-configs
func TestAnAdministratorLetsMoreConfigurationsBeWatched(t *testing.T) {
	var fleet []Named
	for i := range 3000 {
		cluster := fmt.Sprintf("c%04d", i)
		fleet = append(fleet, Named{Cluster: cluster, Configs: []addonv1beta1.AddOnConfig{fixture.ConfigMap(cluster)}})
	}
	watched := asked{}
	(&Store{Others: watched}).Want("fleet", fleet...)
	assert.Equal(t, 1000, watched["fleet"])
	(&Store{Others: watched, Limit: 6000}).Want("fleet", fleet...)
	assert.Equal(t, 3000, watched["fleet"])
}

// asked are the objects that are to be watched, by add-on.
type asked map[string]int

func (a asked) Want(owner string, refs []objectwatch.Ref, _ ...objectwatch.Ref) {
	if a[owner] = len(refs); len(refs) == 0 {
		delete(a, owner)
	}
}

func (asked) Get(objectwatch.Ref) objectwatch.State { return objectwatch.State{} }

// Shows: security/watches-of-one-namespace
func TestOneNamespaceCannotTakeTheWatchesOfOthersByManyAddOns(t *testing.T) {
	var configs []addonv1beta1.AddOnConfig
	for i := range 8 {
		configs = append(configs, fixture.ConfigMap(fmt.Sprint(i)))
	}
	total := func(a asked) (n int) {
		for count := range maps.Values(a) {
			n += count
		}
		return n
	}
	const tenant, other = "a", "b"
	var orders [2]asked
	for at, reverse := range []bool{false, true} {
		watched := asked{}
		s := &Store{Others: watched}
		for i := range 100 {
			if reverse {
				i = 99 - i
			}
			s.Want(fmt.Sprintf("add-on-%02d", i), Named{Cluster: tenant, Configs: configs})
		}
		assert.Equal(t, maxOfTenant, total(watched))
		s.Want("fleet", Named{Configs: configs}, Named{Cluster: other, Configs: []addonv1beta1.AddOnConfig{fixture.ConfigMap("own")}})
		assert.Equal(t, 9, watched["fleet"], "others keep theirs")
		orders[at] = maps.Clone(watched)

		s.Want("add-on-00")
		assert.NotContains(t, watched, "add-on-00")
		assert.Equal(t, maxOfTenant+9, total(watched), "what one leaves another one gets")
		s.Want("add-on-01", Named{Cluster: tenant, Configs: configs[:1]})
		assert.Equal(t, 1, watched["add-on-01"])
		assert.Equal(t, maxOfTenant+9, total(watched))
	}
	assert.Equal(t, orders[0], orders[1], "the order in which they come decides nothing")
}
