package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// tree returns the command that shows a fleet, or a part of it, as a tree.
func (p *Plugin) tree() *cobra.Command {
	var all bool
	var again watch
	kinds := []string{report.KindAddOn, report.KindCluster, report.KindWork}
	c := &cobra.Command{
		Use:   "tree [addon NAME | cluster NAME | work NAME]",
		Short: "Show add-ons and clusters with their problems, equal ones in one row", ValidArgs: kinds,
		Example: "  kubectl spokelet tree\n  kubectl spokelet tree addon logs --all\n" +
			"  kubectl spokelet tree work addon-logs-deploy-0 -n store-077",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && (len(args) != 2 || !slices.Contains(kinds, args[0])) {
				return fmt.Errorf("%w: it is tree, tree addon NAME, tree cluster NAME, or tree work NAME", errUse)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return p.watched(c.Context(), again, func(ctx context.Context) error {
				r, err := p.reader()
				if err != nil {
					return err
				}
				root, err := p.grown(ctx, r, args, all)
				if err != nil {
					return err
				}
				return p.drawn(r, root)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "show what is without a problem, too")
	again.add(c)
	return c
}

// drawn writes a tree.
func (p *Plugin) drawn(r *fleet.Reader, root report.Node) error {
	a := answer{Kind: "tree", Hub: r.Source.Name(), Answer: root, Gaps: r.Gaps, names: append([]string{}, root.Names()...)}
	done, err := p.encoded(a)
	if !done && err == nil {
		t := p.terminal()
		err = errors.Join(t.Tree(root), t.Gaps(r.Gaps))
	}
	switch {
	case err != nil:
		return err
	case root.Troubled():
		return errProblem
	}
	return unread(r)
}

// grown reads what a tree is about, and returns the tree.
func (p *Plugin) grown(ctx context.Context, r *fleet.Reader, args []string, all bool) (report.Node, error) {
	if len(args) == 0 {
		f, err := wholeFleet(ctx, r, "")
		return report.Tree(f, "hub", all), err
	}
	kind, name := args[0], args[1]
	switch kind {
	case report.KindAddOn:
		f, err := facts.AddOnFleet(ctx, r, name)
		if err == nil && len(f.AddOns)+len(f.Definitions) == 0 {
			if r.LacksPart("managedclusteraddons") {
				return report.Node{}, fmt.Errorf("%w: %w", errBlind, gapsOf(r))
			}
			return report.Nothing(kind, name, "neither a ClusterManagementAddOn nor a ManagedClusterAddOn has this name"), nil
		}
		return report.AddOnTree(f, name, all), err
	case report.KindCluster:
		f, err := wholeFleet(ctx, r, name)
		if err != nil {
			return report.Node{}, err
		}
		if len(f.Clusters) == 0 && !r.LacksObject("managedclusters", name) {
			return report.NoCluster(name), nil
		}
		f.Now = p.Now()
		works, err := fleet.List[fleet.Work](ctx, r, fleet.Query{Namespace: name})
		return report.ClusterTree(f, works, name, all), err
	}
	namespace, err := p.namespace()
	if err != nil {
		return report.Node{}, err
	}
	work, err := fleet.Get[fleet.Work](ctx, r, namespace, name)
	switch {
	case err != nil:
		return report.Node{}, err
	case work != nil:
		return report.WorkTree(work, all), nil
	case len(r.Gaps) > 0:
		return report.Node{}, fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	return report.Nothing(kind, name, "there is no ManifestWork of this name for cluster "+namespace), nil
}
