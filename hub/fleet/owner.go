package fleet

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Owner is which of several Placements a cluster belongs to: the last that selects it.
type Owner struct {
	// Index is that of the Placement; -1 when none selects the cluster.
	Index int
	// Doubts are the later Placements that may select the cluster as well, the last first.
	Doubts []Doubt
}

// Doubt is a Placement that may select a cluster, although no PlacementDecision says so.
type Doubt struct {
	// Index is that of the Placement.
	Index int
	// Why is the cause.
	Why error
	// Missing reports that the Placement does not exist.
	Missing bool
	// Until is when it holds up only the clusters that are known to be its own; zero when it does so already.
	Until time.Time
}

// OwnerOf returns which of several Placements a cluster belongs to.
func OwnerOf(cluster string, placements []*Decisions, now time.Time) Owner {
	owner := Owner{Index: len(placements) - 1}
	for ; owner.Index >= 0 && !placements[owner.Index].Selects(cluster); owner.Index-- {
		d := placements[owner.Index]
		until, why := d.Doubted(now)
		if why == nil {
			until, why = d.Leaves(cluster, now)
		}
		if why != nil {
			owner.Doubts = append(owner.Doubts, Doubt{owner.Index, why, d.Placement == nil, until})
		}
	}
	return owner
}

// Keeps returns the doubts because of which an add-on keeps the configurations that it has: those about Placements with
// other configurations than it has and is to get. One that has been in doubt for long counts only if the add-on has its
// configurations. of returns the configurations that a Placement asks for; those of -1 are the defaults.
func (o Owner) Keeps(has []addonv1beta1.AddOnConfig, of func(placement int) []addonv1beta1.AddOnConfig) []Doubt {
	if len(o.Doubts) == 0 || slices.Equal(has, of(o.Index)) {
		return nil
	}
	var keeps []Doubt
	for _, doubt := range o.Doubts {
		configs := of(doubt.Index)
		if !slices.Equal(configs, of(o.Index)) && (!doubt.Until.IsZero() || slices.Equal(has, configs)) {
			keeps = append(keeps, doubt)
		}
	}
	return keeps
}

// Owner reads which of several Placements a cluster belongs to.
func (p *Placements) Owner(ctx context.Context, placements []types.NamespacedName, cluster string) (Owner, error) {
	all := make([]*Decisions, 0, len(placements))
	for _, key := range placements {
		d, err := p.Decisions(ctx, key)
		if err != nil {
			return Owner{Index: -1}, err
		}
		all = append(all, d)
	}
	owner := OwnerOf(cluster, all, p.Clock.Now())
	if p.Final {
		owner.Doubts = nil
	}
	return owner, nil
}
