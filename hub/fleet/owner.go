package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	// Lapsed reports that the Placement does not exist for so long that it holds up only the clusters that it is known to
	// have selected; Until is when it will.
	Lapsed bool
	Until  time.Time
}

// OwnerOf returns which of several Placements a cluster belongs to.
func OwnerOf(cluster string, placements []*Decisions, now time.Time) Owner {
	owner := Owner{Index: len(placements) - 1}
	for ; owner.Index >= 0 && !placements[owner.Index].Selects(cluster); owner.Index-- {
		d := placements[owner.Index]
		until, err := d.Uncertain(now)
		switch {
		case err != nil:
			owner.Doubts = append(owner.Doubts, Doubt{Index: owner.Index, Why: err, Until: until})
		case d.Incomplete != nil:
			owner.Doubts = append(owner.Doubts, Doubt{Index: owner.Index, Why: d.Incomplete, Lapsed: true})
		}
	}
	return owner
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
