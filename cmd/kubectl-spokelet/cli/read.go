package cli

import (
	"context"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
)

// readFleet reads what a judgement of the whole fleet is about; in one namespace where that is named. Clusters are not
// in namespaces: that of the name is read then.
func readFleet(ctx context.Context, r *fleet.Reader, cluster string) (report.Fleet, error) {
	var f report.Fleet
	var err error
	if f.Clusters, err = fleet.List[fleet.Cluster](ctx, r, fleet.Query{Name: cluster}); err != nil {
		return f, err
	}
	if f.AddOns, err = fleet.List[fleet.AddOn](ctx, r, fleet.Query{Namespace: cluster}); err != nil {
		return f, err
	}
	if f.Definitions, err = fleet.List[fleet.Definition](ctx, r, fleet.Query{}); err != nil {
		return f, err
	}
	var of map[string]string
	if cluster != "" {
		of = map[string]string{names.LabelClusterName: cluster}
	}
	f.Requests, err = fleet.List[fleet.Request](ctx, r, fleet.Query{Labels: of})
	return f, err
}

// addOnFleet reads what a judgement of one add-on of a fleet is about.
func addOnFleet(ctx context.Context, r *fleet.Reader, name string) (report.Fleet, error) {
	var f report.Fleet
	var err error
	if f.Clusters, err = fleet.List[fleet.Cluster](ctx, r, fleet.Query{}); err != nil {
		return f, err
	}
	if f.AddOns, err = fleet.List[fleet.AddOn](ctx, r, fleet.Query{Name: name}); err != nil {
		return f, err
	}
	f.Definitions, err = fleet.List[fleet.Definition](ctx, r, fleet.Query{Name: name})
	return f, err
}

// addOnFacts reads what an add-on on a cluster depends on.
func addOnFacts(ctx context.Context, r *fleet.Reader, namespace, name string) (report.AddOnFacts, error) {
	f := report.AddOnFacts{Lacks: r.Lacks}
	var err error
	if f.AddOn, err = fleet.Get[fleet.AddOn](ctx, r, namespace, name); err != nil {
		return f, err
	}
	if f.Cluster, err = fleet.Get[fleet.Cluster](ctx, r, "", namespace); err != nil {
		return f, err
	}
	if f.Definition, err = fleet.Get[fleet.Definition](ctx, r, "", name); err != nil {
		return f, err
	}
	if f.Decisions, err = readDecisions(ctx, r, f.Definition); err != nil {
		return f, err
	}
	if f.AddOn == nil && f.Cluster != nil {
		if f.Placements, err = readPlacements(ctx, r, f.Definition); err != nil {
			return f, err
		}
	}
	of := fleet.Query{Namespace: namespace, Labels: map[string]string{names.LabelAddonName: name}}
	if f.Works, err = fleet.List[fleet.Work](ctx, r, of); err != nil {
		return f, err
	}
	if f.AddOn != nil && report.OfAddOn(f.AddOn) != nil {
		if f.Others, err = fleet.List[fleet.AddOn](ctx, r, fleet.Query{Name: name}); err != nil {
			return f, err
		}
	}
	return f, nil
}

// readDecisions reads which clusters the placements of an add-on select; none without a definition.
func readDecisions(ctx context.Context, r *fleet.Reader, d *fleet.Definition) ([]fleet.Decision, error) {
	if d == nil {
		return nil, nil
	}
	var all []fleet.Decision
	for _, ref := range d.Spec.InstallStrategy.Placements {
		of := fleet.Query{Namespace: ref.Namespace, Labels: map[string]string{names.LabelPlacement: ref.Name}}
		pages, err := fleet.List[fleet.Decision](ctx, r, of)
		if err != nil {
			return nil, err
		}
		all = append(all, pages...)
	}
	return all, nil
}

// readPlacements reads the placements of an add-on themselves; those that are gone are left out.
func readPlacements(ctx context.Context, r *fleet.Reader, d *fleet.Definition) ([]fleet.Placement, error) {
	if d == nil {
		return nil, nil
	}
	var all []fleet.Placement
	for _, ref := range d.Spec.InstallStrategy.Placements {
		placement, err := fleet.Get[fleet.Placement](ctx, r, ref.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		if placement != nil {
			all = append(all, *placement)
		}
	}
	return all, nil
}

// clusterChain reads what a cluster depends on, and follows it.
func clusterChain(ctx context.Context, r *fleet.Reader, name string) (report.Chain, error) {
	cluster, err := fleet.Get[fleet.Cluster](ctx, r, "", name)
	if err != nil {
		return report.Chain{}, err
	}
	of := fleet.Query{Labels: map[string]string{names.LabelClusterName: name}}
	requests, err := fleet.List[fleet.Request](ctx, r, of)
	if err != nil {
		return report.Chain{}, err
	}
	beat, err := fleet.Get[fleet.Lease](ctx, r, name, lease.ClusterLease)
	if err != nil {
		return report.Chain{}, err
	}
	var heartbeat time.Time
	if beat != nil && beat.Spec.RenewTime != nil {
		heartbeat = beat.Spec.RenewTime.Time
	}
	return report.ClusterChain(name, cluster, requests, heartbeat), nil
}
