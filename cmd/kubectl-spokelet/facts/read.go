package facts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
)

// Fleet reads what a judgement of the whole fleet is about; in one namespace where that is named. Clusters are not
// in namespaces: that of the name is read then.
func Fleet(ctx context.Context, r *fleet.Reader, cluster string) (report.Fleet, error) {
	f := report.Fleet{Cluster: cluster, Lacks: r.Lacks, Undecoded: undecoded(r)}
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
	if cluster == "" {
		f.Requests, err = fleet.List[fleet.Request](ctx, r, fleet.Query{})
		return f, err
	}
	return f, ofCluster(ctx, r, &f)
}

// ofCluster reads what a judgement of one cluster is about, and that of a whole fleet is not: its requests, its
// heartbeat, and which placements decide about add-ons that wait on it.
func ofCluster(ctx context.Context, r *fleet.Reader, f *report.Fleet) error {
	var err error
	of := map[string]string{names.LabelClusterName: f.Cluster}
	if f.Requests, err = fleet.List[fleet.Request](ctx, r, fleet.Query{Labels: of}); err != nil {
		return err
	}
	beat, err := heartbeat(ctx, r, f.Cluster)
	if err != nil {
		return err
	}
	f.Heartbeats = map[string]time.Time{f.Cluster: beat}
	for i := range f.AddOns {
		if causes.Waits(f.AddOns[i].Status.Conditions) == nil {
			continue
		}
		for n := range f.Definitions {
			if d := &f.Definitions[n]; d.Metadata.Name == f.AddOns[i].Metadata.Name {
				decisions, err := Decisions(ctx, r, d)
				if err != nil {
					return err
				}
				f.Decisions = append(f.Decisions, decisions...)
			}
		}
	}
	return nil
}

// heartbeat reads the last renewal of the Lease of a cluster; zero where that is not known.
func heartbeat(ctx context.Context, r *fleet.Reader, cluster string) (time.Time, error) {
	beat, err := fleet.Get[fleet.Lease](ctx, r, cluster, lease.ClusterLease)
	if err != nil || beat == nil || beat.Spec.RenewTime == nil {
		return time.Time{}, err
	}
	return fleet.Known(beat.Spec.RenewTime.Time), nil
}

// undecoded says which clusters are there and could not be decoded.
func undecoded(r *fleet.Reader) func(cluster string) bool {
	return func(cluster string) bool { return r.LacksObject("managedclusters", cluster) }
}

// AddOnFleet reads what a judgement of one add-on of a fleet is about.
func AddOnFleet(ctx context.Context, r *fleet.Reader, name string) (report.Fleet, error) {
	f := report.Fleet{Lacks: r.Lacks, Undecoded: undecoded(r)}
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

// AddOn reads what an add-on on a cluster depends on.
func AddOn(ctx context.Context, r *fleet.Reader, namespace, name string) (report.AddOnFacts, error) {
	f := report.AddOnFacts{Lacks: r.LacksPart} // Of most resources it needs one object.
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
	if f.Decisions, err = Decisions(ctx, r, f.Definition); err != nil {
		return f, err
	}
	if f.AddOn == nil && f.Cluster != nil {
		if f.Placements, err = Placements(ctx, r, f.Definition); err != nil {
			return f, err
		}
	}
	if f.Cluster != nil && report.MayWaitForRequest(f.Cluster) {
		of := fleet.Query{Labels: map[string]string{names.LabelClusterName: namespace}}
		if f.Requests, err = fleet.List[fleet.Request](ctx, r, of); err != nil {
			return f, err
		}
	}
	of, host := fleet.Meta{Namespace: namespace, Name: name}, ""
	if f.AddOn != nil {
		host = f.AddOn.Metadata.Annotations[names.AnnotationHostingCluster]
	}
	if f.Works, err = Works(ctx, r, of, host); err != nil {
		return f, err
	}
	if f.AddOn != nil && report.OfAddOn(f.AddOn, f.Cluster) != nil {
		if f.Others, err = fleet.List[fleet.AddOn](ctx, r, fleet.Query{Name: name}); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Works reads the works of an add-on on its cluster, and those on its hosting cluster. Works that its cluster hosts
// for others have the name of the add-on, too. host is the name of the hosting cluster; empty for none.
func Works(ctx context.Context, r *fleet.Reader, of fleet.Meta, host string) ([]fleet.Work, error) {
	q := fleet.Query{Namespace: of.Namespace, Labels: map[string]string{names.LabelAddonName: of.Name}}
	works, err := fleet.List[fleet.Work](ctx, r, q)
	if err != nil {
		return nil, err
	}
	works = slices.DeleteFunc(works, func(w fleet.Work) bool {
		return cmp.Or(w.Metadata.Labels[names.LabelAddonNamespace], of.Namespace) != of.Namespace
	})
	if cmp.Or(host, of.Namespace) == of.Namespace {
		return works, nil
	}
	q.Namespace, q.Labels[names.LabelAddonNamespace] = host, of.Namespace
	hosted, err := fleet.List[fleet.Work](ctx, r, q)
	return append(works, hosted...), err
}

// Silent reads the clusters of add-ons of a namespace, which tell whether the time is over in which the hub lost
// them; none where it lost none. An empty namespace means all.
func Silent(
	ctx context.Context, r *fleet.Reader, namespace string, addOns []fleet.AddOn,
) (map[string]*fleet.Cluster, error) {
	silent := func(a fleet.AddOn) bool { return causes.Silent(a.Status.Conditions) != nil }
	if !slices.ContainsFunc(addOns, silent) {
		return nil, nil
	}
	clusters, err := fleet.List[fleet.Cluster](ctx, r, fleet.Query{Name: namespace})
	known := make(map[string]*fleet.Cluster, len(clusters))
	for i := range clusters {
		known[clusters[i].Metadata.Name] = &clusters[i]
	}
	return known, err
}

// Decisions reads which clusters the placements of an add-on select; none without a definition.
func Decisions(ctx context.Context, r *fleet.Reader, d *fleet.Definition) ([]fleet.Decision, error) {
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

// Policy reads the AddOnPolicy of an add-on, and the windows that are for it; none where the hub has no such kinds.
func Policy(ctx context.Context, r *fleet.Reader, addOn string) (*report.Policy, []report.Window, error) {
	found, err := fleet.Offered[fleet.Policy](ctx, r, fleet.Query{Name: addOn})
	if err != nil {
		return nil, nil, err
	}
	windows, err := fleet.Offered[fleet.Window](ctx, r, fleet.Query{})
	if err != nil || len(found) == 0 {
		return nil, report.WindowsOf(windows, addOn), err
	}
	return report.PolicyOf(&found[0]), report.WindowsOf(windows, addOn), nil
}

// Placements reads the placements of an add-on themselves; those that are gone are left out.
func Placements(ctx context.Context, r *fleet.Reader, d *fleet.Definition) ([]fleet.Placement, error) {
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

// Cluster reads what a cluster depends on.
func Cluster(ctx context.Context, r *fleet.Reader, name string, now time.Time) (report.ClusterFacts, error) {
	f := report.ClusterFacts{Now: now}
	var err error
	if f.Cluster, err = fleet.Get[fleet.Cluster](ctx, r, "", name); err != nil {
		return f, err
	}
	of := fleet.Query{Labels: map[string]string{names.LabelClusterName: name}}
	if f.Requests, err = fleet.List[fleet.Request](ctx, r, of); err != nil {
		return f, err
	}
	f.Heartbeat, err = heartbeat(ctx, r, name)
	return f, err
}
