package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/lease"
)

// row is one object of a list.
type row struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Ready     bool            `json:"ready"`
	Problem   *report.Problem `json:"problem"`
	Details   report.Details  `json:"details"`
}

// get returns the command that lists objects with what is wrong with them.
func (p *Plugin) get() *cobra.Command {
	var notReady, everywhere bool
	var again watch
	c := &cobra.Command{
		Use:       "get (clusters | addons | works | windows)",
		Short:     "List clusters, add-ons, works or maintenance windows with what is wrong with them",
		Example:   "  kubectl spokelet get clusters -o wide\n  kubectl spokelet get addons -A --not-ready",
		ValidArgs: []string{"clusters", "addons", "works", "windows"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(c.ValidArgs, args[0]) {
				return fmt.Errorf("%w: it is get clusters, get addons, get works or get windows", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return p.watched(c.Context(), again, func(ctx context.Context) error {
				if args[0] == "windows" {
					return p.windows(ctx, notReady)
				}
				return p.got(ctx, args[0], notReady, everywhere)
			})
		},
	}
	c.Flags().BoolVar(&notReady, "not-ready", false, "leave out what is well")
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list those of all clusters")
	again.add(c)
	return c
}

// got reads and writes a list.
func (p *Plugin) got(ctx context.Context, kind string, notReady, everywhere bool) error {
	r, err := p.reader()
	if err != nil {
		return err
	}
	namespace := ""
	if !everywhere {
		if namespace, err = p.namespace(); err != nil {
			return err
		}
	}
	rows, err := p.rowsOf(ctx, r, kind, namespace)
	if err != nil {
		return err
	}
	if len(rows) == 0 && len(r.Gaps) > 0 {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	if notReady {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.Ready })
	}
	return p.listed(kind, r, rows)
}

// rowsOf reads objects of a kind and judges each.
func (p *Plugin) rowsOf(ctx context.Context, r *fleet.Reader, kind, namespace string) ([]row, error) {
	var rows []row
	switch kind {
	case "clusters":
		return p.clusterRows(ctx, r)
	case "addons":
		all, err := fleet.List[fleet.AddOn](ctx, r, fleet.Query{Namespace: namespace})
		if err != nil {
			return nil, err
		}
		clusters, err := facts.Silent(ctx, r, namespace, all)
		for i := range all {
			problem := report.OfAddOn(&all[i], clusters[all[i].Metadata.Namespace])
			rows = append(rows, rowOf(report.KindAddOn, all[i].Metadata, problem, report.AddOnDetails(&all[i])))
		}
		return rows, err
	}
	all, err := fleet.List[fleet.Work](ctx, r, fleet.Query{Namespace: namespace})
	for i := range all {
		rows = append(rows, rowOf(report.KindWork, all[i].Metadata, report.OfWork(&all[i]), report.WorkDetails(&all[i])))
	}
	return rows, err
}

// clusterRows reads clusters, their requests and, for a list in detail, their heartbeats.
func (p *Plugin) clusterRows(ctx context.Context, r *fleet.Reader) ([]row, error) {
	var f report.Fleet
	var err error
	if f.Clusters, err = fleet.List[fleet.Cluster](ctx, r, fleet.Query{}); err != nil {
		return nil, err
	}
	if f.Requests, err = fleet.List[fleet.Request](ctx, r, fleet.Query{}); err != nil {
		return nil, err
	}
	beats := map[string]*time.Time{}
	if p.output != "" && p.output != outputName {
		leases, err := fleet.List[fleet.Lease](ctx, r, fleet.Query{Name: lease.ClusterLease})
		if err != nil {
			return nil, err
		}
		for i := range leases {
			if at := leases[i].Spec.RenewTime; at != nil {
				beats[leases[i].Metadata.Namespace] = fleet.Instant(at.Time)
			}
		}
	}
	f.Now, f.Heartbeats = p.Now(), map[string]time.Time{}
	for name, at := range beats {
		if at != nil {
			f.Heartbeats[name] = *at
		}
	}
	problems := map[string]*report.Problem{}
	for _, found := range report.Problems(f) {
		problems[found.Name] = &found
	}
	var rows []row
	for i := range f.Clusters {
		name := f.Clusters[i].Metadata.Name
		details := report.ClusterDetails(&f.Clusters[i], beats[name])
		rows = append(rows, rowOf(report.KindCluster, f.Clusters[i].Metadata, problems[name], details))
	}
	return rows, nil
}

// rowOf is the row of an object.
func rowOf(kind string, of fleet.Meta, problem *report.Problem, details report.Details) row {
	return row{
		Kind: kind, Namespace: of.Namespace, Name: of.Name, Ready: problem == nil, Problem: problem, Details: details,
	}
}

// listed writes a list.
func (p *Plugin) listed(kind string, r *fleet.Reader, rows []row) error {
	if done, err := p.encoded(answer{Kind: kind, Hub: r.Source.Name(), Answer: rows, Gaps: r.Gaps}); done {
		return err
	}
	t := p.terminal()
	if p.output == outputName {
		for _, one := range rows {
			if _, err := fmt.Fprintf(t.Out, "%s/%s\n", one.Kind, show.Safe(one.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(t.Table(p.table(t, kind, rows)), t.Gaps(r.Gaps))
}

// table returns the table of a list: with more columns where they are asked for.
func (p *Plugin) table(t show.Terminal, kind string, rows []row) show.Table {
	headings := []string{"CLUSTER", "NAME", "READY", "CODE", "SINCE", "REASON"}
	if kind == "clusters" {
		headings = headings[1:]
	}
	if p.output == outputWide {
		headings = append(headings, map[string][]string{
			"clusters": {"KUBERNETES", "AGENT", "CERTIFICATE", "HEARTBEAT"}, "addons": {"CERTIFICATE", "IN FORCE"},
			"works": {"MANIFESTS"},
		}[kind]...)
	}
	table := show.Table{Headings: append(headings, "MESSAGE")}
	for _, one := range rows {
		of := map[string]string{
			"CLUSTER": one.Namespace, "NAME": one.Name, "READY": strconv.FormatBool(one.Ready),
			"KUBERNETES": one.Details.Kubernetes, "AGENT": one.Details.Agent, "CERTIFICATE": t.Until(one.Details.Ends),
			"HEARTBEAT": t.Since(one.Details.Heartbeat), "IN FORCE": one.Details.Content, "MANIFESTS": one.Details.Content,
		}
		if problem := one.Problem; problem != nil {
			of["CODE"], of["SINCE"] = string(problem.Code), t.Since(problem.Since)
			of["REASON"], of["MESSAGE"] = problem.Reason, cmp.Or(problem.Message, problem.Title)
		}
		cells := make([]string, 0, len(table.Headings))
		for _, heading := range table.Headings {
			cells = append(cells, of[heading])
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}
