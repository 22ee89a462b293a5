package planner

import (
	"cmp"
	"fmt"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// WaveID identifies a wave of a placement among those that its strategy makes. Its values can be compared.
type WaveID struct {
	key waveKey
	// others are the mandatory groups where the wave is of all clusters that are in none of them.
	others string
}

// Waves says in which wave a strategy has a cluster.
type Waves struct{ rules rules }

// WavesOf returns the waves of a strategy. One that cannot be used has one wave, and admits nobody.
func WavesOf(strategy clusterv1alpha1.RolloutStrategy) Waves {
	r, _ := rulesOf(Placement{Strategy: strategy})
	return Waves{rules: r}
}

// Of returns the wave of the clusters in a decision group, by its index, which is negative where there is none, and its
// name.
func (w Waves) Of(index int, name string) WaveID {
	return w.rules.id(w.rules.wave(&Cluster{Group: index, GroupName: name}))
}

// id returns the identity of a wave.
func (r rules) id(key waveKey) WaveID {
	id := WaveID{key: key}
	if key.kind == manyGroups && len(r.mandatory) > 0 {
		id.others = mandatoryNames(r)
		for _, entry := range r.mandatory {
			id.others += fmt.Sprintf(" %d/%s", entry.GroupIndex, entry.GroupName)
		}
	}
	return id
}

// Compare returns the order of two waves of a placement: the one that comes first is less.
func (id WaveID) Compare(other WaveID) int {
	return cmp.Or(id.key.compare(other.key), cmp.Compare(id.others, other.others))
}

// Key returns what tells the wave from all others that any strategy can make of a placement.
func (id WaveID) Key() string {
	return fmt.Sprintf("%d/%d/%s/%s", id.key.kind, id.key.index, id.key.name, id.others)
}

// Mandatory reports whether the wave is a mandatory decision group.
func (id WaveID) Mandatory() bool { return id.key.kind == mandatoryGroup }

// String names the wave within its placement.
func (id WaveID) String() string {
	switch {
	case id.key.kind != manyGroups:
		return id.key.String()
	case id.others != "":
		return "all other clusters"
	}
	return "all clusters"
}
