package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/causes"
)

// fewNames is how many names of a row are shown, and perPage how many rows a page has.
const (
	fewNames = 6
	perPage  = 50
)

// matrixRow is a row of the matrix as it is drawn.
type matrixRow struct {
	report.AddOnRow

	Bar   []segment
	Cells []cell
}

// cell is a number of the matrix.
type cell struct {
	Standing report.Standing
	Count    int
}

// likes are clusters that are alike, as they are shown.
type likes struct {
	report.Likes

	Few  []string
	More int
	// Address leads to all of them.
	Address string
}

// verdict counts what is wrong. Partly reports that not all clusters or not all add-ons could be read.
type verdict struct {
	Problems, Warnings int
	Partly             bool
}

func judged(s kept) verdict {
	problems, warnings := report.Wrong(s.Groups, s.Findings)
	return verdict{problems, warnings, s.LacksPart("managedclusters") || s.LacksPart("managedclusteraddons")}
}

// fleetData is the view of the whole fleet.
type fleetData struct {
	Clusters, Well int
	AddOns         int
	verdict

	Findings  []report.Finding
	Standings []report.Standing
	Matrix    []matrixRow
	Moving    []report.AddOnRow
	Alikes    pages[likes]
	// Policies are those of add-ons, and Windows what is shown of the windows.
	Policies []*ruled
	Windows  windows
}

func (p *Page) fleet(_ context.Context, s kept, r *http.Request) (view, error) {
	d := fleetData{
		Clusters: len(s.Clusters), AddOns: len(s.AddOns), Findings: s.Findings, Standings: report.Standings(),
	}
	d.verdict = judged(s)
	for _, policy := range s.Policies {
		d.Policies = append(d.Policies, ruledBy(policy, fewSayings, s.Now))
	}
	d.Windows = shownWindows(s.Windows)
	for _, row := range s.Matrix {
		drawn := matrixRow{AddOnRow: row, Bar: bar(barOrder(), row.Counts)}
		for _, standing := range report.Standings() {
			drawn.Cells = append(drawn.Cells, cell{standing, row.Counts[standing]})
		}
		d.Matrix = append(d.Matrix, drawn)
		if row.Message != "" {
			d.Moving = append(d.Moving, row)
		}
	}
	all := make([]likes, 0, len(s.Alikes))
	for _, group := range s.Alikes {
		few := group.Clusters[:min(fewNames, len(group.Clusters))]
		one := likes{Likes: group, Few: few, More: len(group.Clusters) - len(few)}
		one.Address = to("clusters", "like", group.Clusters[0])
		all = append(all, one)
		if group.Well() {
			d.Well += len(group.Clusters)
		}
	}
	d.Alikes = paged(all, r, perPage, func(page int) string { return to("./", "page", page) })
	return view{Template: "fleet", Here: "fleet", Title: "Fleet", Data: d}, nil
}

// clusterRow is a cluster of a list.
type clusterRow struct {
	Name    string
	Problem *report.Problem
	report.Details

	Ready, All int
	Ill        int
	// Late reports that its certificate should have been replaced.
	Late bool
}

// clustersData is a list of clusters.
type clustersData struct {
	// Asked is what names are to have in them, and Like a cluster that all are like; empty for any.
	Asked, Like string
	Rows        pages[clusterRow]
}

// clusters is the list of clusters: those that are in trouble first, then by name.
func (p *Page) clusters(_ context.Context, s kept, r *http.Request) (view, error) {
	d := clustersData{Asked: r.URL.Query().Get("q"), Like: r.URL.Query().Get("like")}
	var rows []clusterRow
	for _, group := range s.Alikes {
		if _, has := slices.BinarySearch(group.Clusters, d.Like); d.Like != "" && !has {
			continue
		}
		for _, name := range group.Clusters {
			if strings.Contains(name, d.Asked) {
				rows = append(rows, clusterRow{Name: name})
			}
		}
	}
	d.Rows = paged(rows, r, 2*perPage, func(page int) string {
		return to("clusters", "q", d.Asked, "like", d.Like, "page", page)
	})
	for i := range d.Rows.Items {
		row := &d.Rows.Items[i]
		row.Details = report.ClusterDetails(s.Cluster(row.Name), nil)
		for _, certificate := range report.Certificates(s.Cluster(row.Name), nil, s.Now) {
			row.Late = certificate.Late
		}
		row.Problem = problemOf(s.Problems, row.Name)
		row.All, row.Ill = len(s.On(row.Name)), len(s.ProblemsOn(row.Name))
		row.Ready = row.All - row.Ill
	}
	return view{Template: "clusters", Here: "clusters", Title: "Clusters", Data: d}, nil
}

// problemOf returns the problem of a cluster itself; nil for none. Problems of clusters come first, by their names.
func problemOf(all []report.Problem, cluster string) *report.Problem {
	i, found := slices.BinarySearchFunc(all, cluster, func(p report.Problem, name string) int {
		if p.Kind != report.KindCluster {
			return 1
		}
		return cmp.Compare(p.Name, name)
	})
	if !found {
		return nil
	}
	return &all[i]
}

// problemsData is the list of problems, or those of one code.
type problemsData struct {
	verdict

	Codes []coded
	// One reports that one code is asked for, and Text explains it.
	One  bool
	Code causes.Code
	Text [][]part
	// Cluster and AddOn name the one group that is asked for; empty for all.
	Cluster, AddOn string
	Clusters       pages[string]
}

// coded are the problems of a code, as they are shown.
type coded struct {
	report.Coded

	Groups pages[shown]
}

// shown is a group of problems as it is shown.
type shown struct {
	report.Group

	Few  []string
	More int
	// Titled reports that the code and its title are shown: nothing else says them.
	Titled bool
}

func (p *Page) problems(_ context.Context, s kept, r *http.Request) (view, error) {
	query := r.URL.Query()
	d := problemsData{
		verdict: judged(s), Code: causes.Code(query.Get("code")), Cluster: query.Get("cluster"), AddOn: query.Get("addon"),
	}
	d.One = d.Code != ""
	title := "Problems"
	if d.One {
		if causes.Titles()[d.Code] == "" {
			return missing("code", string(d.Code)), nil
		}
		d.Text, title = explained(d.Code), string(d.Code)+", "+causes.Titles()[d.Code]
	}
	for _, one := range report.ByCode(s.Groups, s.Findings) {
		if d.One && one.Code != d.Code {
			continue
		}
		d.Codes = append(d.Codes, d.of(one, r))
	}
	return view{Template: "problems", Here: "problems", Title: title, Data: d}, nil
}

// of arranges the problems of one code.
func (d *problemsData) of(one report.Coded, r *http.Request) coded {
	if d.One && d.Cluster != "" {
		one.Groups = slices.DeleteFunc(slices.Clone(one.Groups), func(g report.Group) bool {
			return g.First.Name != d.AddOn || !slices.Contains(g.Clusters, d.Cluster)
		})
		if len(one.Groups) > 0 {
			d.Clusters = paged(one.Groups[0].Clusters, r, 4*perPage, func(page int) string {
				return to("problems", "code", d.Code, "addon", d.AddOn, "cluster", d.Cluster, "page", page)
			})
		}
	}
	c := coded{Coded: one}
	all := make([]shown, 0, len(one.Groups))
	for _, g := range one.Groups {
		few := g.Clusters[:min(fewNames, len(g.Clusters))]
		all = append(all, shown{Group: g, Few: few, More: len(g.Clusters) - len(few)})
	}
	if !d.One {
		const first = 5
		c.Groups = pages[shown]{Items: all[:min(first, len(all))], Last: min(first, len(all)), All: len(all)}
		return c
	}
	c.Groups = paged(all, r, perPage, func(page int) string { return to("problems", "code", d.Code, "page", page) })
	return c
}
