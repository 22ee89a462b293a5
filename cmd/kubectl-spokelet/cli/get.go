package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
)

// row is one object of a list.
type row struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Ready     bool            `json:"ready"`
	Problem   *report.Problem `json:"problem"`
}

// get returns the command that lists objects with what is wrong with them.
func (p *Plugin) get() *cobra.Command {
	var notReady, everywhere bool
	c := &cobra.Command{
		Use: "get (clusters | addons | works)", Short: "List clusters, add-ons or works with what is wrong with them",
		ValidArgs: []string{"clusters", "addons", "works"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(c.ValidArgs, args[0]) {
				return fmt.Errorf("%w: it is get clusters, get addons or get works", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
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
			rows, err := rowsOf(c.Context(), r, args[0], namespace)
			if err != nil {
				return err
			}
			if len(rows) == 0 && len(r.Gaps) > 0 {
				return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
			}
			if notReady {
				rows = slices.DeleteFunc(rows, func(r row) bool { return r.Ready })
			}
			return p.listed(args[0], r, rows)
		},
	}
	c.Flags().BoolVar(&notReady, "not-ready", false, "leave out what is well")
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list those of all clusters")
	return c
}

// rowsOf reads objects of a kind and judges each.
func rowsOf(ctx context.Context, r *fleet.Reader, kind, namespace string) ([]row, error) {
	var rows []row
	switch kind {
	case "clusters":
		f, err := readFleet(ctx, r, "")
		problems := map[string]report.Problem{}
		for _, p := range report.Problems(f) {
			if p.Kind == report.KindCluster {
				problems[p.Name] = p
			}
		}
		for i := range f.Clusters {
			one := row{Kind: report.KindCluster, Name: f.Clusters[i].Metadata.Name, Ready: true}
			if p, is := problems[one.Name]; is {
				one.Ready, one.Problem = false, &p
			}
			rows = append(rows, one)
		}
		return rows, err
	case "addons":
		all, err := fleet.List[fleet.AddOn](ctx, r, fleet.Query{Namespace: namespace})
		for i := range all {
			rows = append(rows, rowOf(report.KindAddOn, all[i].Metadata, report.OfAddOn(&all[i])))
		}
		return rows, err
	}
	all, err := fleet.List[fleet.Work](ctx, r, fleet.Query{Namespace: namespace})
	for i := range all {
		rows = append(rows, rowOf(report.KindWork, all[i].Metadata, report.OfWork(&all[i])))
	}
	return rows, err
}

// rowOf is the row of an object.
func rowOf(kind string, of fleet.Meta, problem *report.Problem) row {
	return row{Kind: kind, Namespace: of.Namespace, Name: of.Name, Ready: problem == nil, Problem: problem}
}

// listed writes a list.
func (p *Plugin) listed(kind string, r *fleet.Reader, rows []row) error {
	if done, err := p.encoded(answer{Kind: kind, Hub: r.Source.Name(), Answer: rows, Gaps: r.Gaps}); done {
		return err
	}
	t := p.terminal()
	if p.output == "name" {
		for _, one := range rows {
			if _, err := fmt.Fprintf(t.Out, "%s/%s\n", one.Kind, show.Safe(one.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	table := show.Table{Headings: []string{"CLUSTER", "NAME", "READY", "CODE", "SINCE", "REASON", "MESSAGE"}}
	for _, one := range rows {
		cells := []string{one.Namespace, one.Name, strconv.FormatBool(one.Ready), "", "", "", ""}
		if one.Problem != nil {
			text := one.Problem.Message
			if text == "" {
				text = one.Problem.Title
			}
			code, since := string(one.Problem.Code), t.Since(one.Problem.Since)
			cells = []string{one.Namespace, one.Name, "false", code, since, one.Problem.Reason, text}
		}
		if kind == "clusters" {
			cells = cells[1:]
		}
		table.Rows = append(table.Rows, cells)
	}
	if kind == "clusters" {
		table.Headings = table.Headings[1:]
	}
	return errors.Join(t.Table(table), t.Gaps(r.Gaps))
}
