package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// why returns the command that follows one object from the wish to the first cause.
func (p *Plugin) why() *cobra.Command {
	kinds := []string{report.KindAddOn, report.KindCluster, report.KindWork, report.KindRequest}
	var into spoke
	c := &cobra.Command{
		Use: "why (addon NAME | work NAME | cluster NAME | csr NAME)", ValidArgs: kinds,
		Short: "Follow an object from the wish to the first cause, and name the next command",
		Long: "why follows an object from the wish to the first cause, each step with its evidence. With a context of the " +
			"managed cluster (--spoke-context) it looks there, too: workloads and pods, Events, whether Secrets are there, " +
			"and the errors in the log of the agent.",
		Example: "  kubectl spokelet why addon logs -n store-077\n  kubectl spokelet why cluster store-114\n" +
			"  kubectl spokelet why addon logs -n store-077 --spoke-context store-077",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains(kinds, args[0]) {
				return fmt.Errorf("%w: it is why, one of %s, and a name", errUse, strings.Join(kinds, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			r, err := p.reader()
			if err != nil {
				return err
			}
			f, err := p.follow(c.Context(), r, args[0], args[1])
			if err != nil {
				return err
			}
			unread := len(f.Steps) == 0 || args[0] == report.KindAddOn && f.addOn == nil && r.LacksPart("managedclusteraddons")
			if f.Problem != nil && unread && len(r.Gaps) > 0 {
				return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
			}
			gaps := r.Gaps
			if into.named() && args[0] != report.KindRequest {
				side, further, err := p.lookInto(c.Context(), into, f)
				if err != nil {
					return err
				}
				f.Chain, gaps = f.With(side), append(gaps, further...)
			}
			return p.explained(r, f.Chain, gaps)
		},
	}
	into.add(c)
	return c
}

// explained writes a chain.
func (p *Plugin) explained(r *fleet.Reader, chain report.Chain, gaps []fleet.Gap) error {
	if chain.Steps == nil {
		chain.Steps = []report.Step{}
	}
	a := answer{
		Kind: "why", Hub: r.Source.Name(), Answer: chain, Gaps: gaps, names: []string{chain.Kind + "/" + chain.Name},
	}
	done, err := p.encoded(a)
	if !done && err == nil {
		t := p.terminal()
		err = errors.Join(t.Chain(chain), t.Gaps(gaps))
	}
	if err == nil && !chain.Healthy {
		return errProblem
	}
	return err
}

// followed is a chain with the objects of the hub that say where to look on the cluster.
type followed struct {
	report.Chain

	works []fleet.Work
	addOn *fleet.AddOn
}

// follow follows one object.
func (p *Plugin) follow(ctx context.Context, r *fleet.Reader, kind, name string) (followed, error) {
	switch kind {
	case report.KindCluster:
		f, err := facts.Cluster(ctx, r, name, p.Now())
		if err != nil {
			return followed{}, err
		}
		return followed{Chain: report.ClusterChain(name, f)}, nil
	case report.KindRequest:
		request, err := fleet.Get[fleet.Request](ctx, r, "", name)
		return followed{Chain: report.RequestChain(name, request)}, err
	}
	namespace, err := p.namespace()
	if err != nil {
		return followed{}, err
	}
	if kind == report.KindAddOn {
		f, err := facts.AddOn(ctx, r, namespace, name)
		if err != nil {
			return followed{}, err
		}
		chain := report.AddOnChain(namespace, name, f)
		near := slices.DeleteFunc(f.Works, func(w fleet.Work) bool { return w.Metadata.Namespace != namespace })
		return followed{Chain: chain, works: near, addOn: f.AddOn}, nil
	}
	work, err := fleet.Get[fleet.Work](ctx, r, namespace, name)
	f := followed{Chain: report.WorkChain(namespace, name, work)}
	if work != nil {
		f.works = []fleet.Work{*work}
	}
	return f, err
}
