package page

import (
	"context"
	"net/http"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// clusterData is the view of a cluster.
type clusterData struct {
	Name string
	// AddOn is the one that is followed; empty for the cluster itself.
	AddOn string
	report.Details

	// Unread reports that what is asked for may not be read, so that nothing is said of it.
	Unread       bool
	Chain, Of    *report.Chain
	Certificates []report.Certificate
	AddOns       pages[addOnRow]
	Works        pages[workRow]
	NoWorks      bool
}

// addOnRow is an add-on of a cluster.
type addOnRow struct {
	Name     string
	Standing report.Standing
	Problem  *report.Problem
	Content  string
}

// workRow is a work of a cluster.
type workRow struct {
	Name    string
	Problem *report.Problem
	Content string
}

func (p *Page) cluster(ctx context.Context, s kept, r *http.Request) (view, error) {
	d := clusterData{Name: r.URL.Query().Get("name"), AddOn: r.URL.Query().Get("addon")}
	v := view{Template: "cluster", Here: "clusters", Title: "Cluster " + d.Name}
	if d.AddOn != "" {
		v.Title = "Add-on " + d.AddOn + " on " + d.Name
	}
	if d.Name == "" {
		return missing("cluster", ""), nil
	}
	reader := s.Reader()
	on := s.On(d.Name)
	d.AddOns = paged(p.standing(s, d.Name, on), r, 4*perPage, func(page int) string {
		return to("cluster", "name", d.Name, "addon", d.AddOn, "page", page)
	})
	d.Certificates = report.Certificates(s.Cluster(d.Name), on, s.Now)
	err := p.follow(ctx, s, reader, &d)
	v.Gaps, v.Data = reader.Gaps, d
	if err == nil && d.Chain != nil && s.Cluster(d.Name) == nil && len(on) == 0 && !d.Unread {
		v.Status = http.StatusNotFound
	}
	return v, err
}

// standing lists the add-ons of a cluster, those with problems first.
func (p *Page) standing(s kept, cluster string, on []fleet.AddOn) []addOnRow {
	var ill, well []addOnRow
	for i := range on {
		name := on[i].Metadata.Name
		row := addOnRow{Name: name, Problem: s.ProblemOf(cluster, name), Content: report.AddOnDetails(&on[i]).Content}
		far, _ := s.Rollout(name)
		row.Standing = report.StandingOf(row.Problem, far.StageOf(cluster))
		if row.Problem != nil {
			ill = append(ill, row)
		} else {
			well = append(well, row)
		}
	}
	return append(ill, well...)
}

// follow reads what is not kept of the fleet, and follows the cluster and the add-on.
func (p *Page) follow(ctx context.Context, s kept, r *fleet.Reader, d *clusterData) error {
	of, err := facts.Cluster(ctx, r, d.Name, p.Now())
	if err != nil {
		return err
	}
	d.Unread = of.Cluster == nil && r.LacksObject("managedclusters", d.Name)
	if !d.Unread {
		chain := report.ClusterChain(d.Name, of)
		d.Chain = &chain
	}
	if of.Cluster != nil {
		d.Details = report.ClusterDetails(of.Cluster, fleet.Instant(of.Heartbeat))
	}
	works, err := fleet.List[fleet.Work](ctx, r, fleet.Query{Namespace: d.Name})
	if err != nil {
		return err
	}
	d.NoWorks = r.Lacks("manifestworks")
	rows := make([]workRow, 0, len(works))
	for i := range works {
		w := &works[i]
		rows = append(rows, workRow{w.Metadata.Name, report.OfWork(w), report.WorkDetails(w).Content})
	}
	d.Works = pages[workRow]{Items: rows[:min(4*perPage, len(rows))], All: len(rows)}
	if d.AddOn == "" {
		return nil
	}
	addOn, err := s.AddOn(ctx, r, d.Name, d.AddOn)
	if err != nil {
		return err
	}
	if addOn.AddOn == nil && s.LacksPart("managedclusteraddons") {
		d.Unread = true
		return nil
	}
	chain := report.AddOnChain(d.Name, d.AddOn, addOn)
	d.Of = &chain
	return nil
}
