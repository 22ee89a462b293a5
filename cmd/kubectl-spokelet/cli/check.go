package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
)

// check returns the command that looks for problems of the hub, its clusters and their add-ons.
func (p *Plugin) check() *cobra.Command {
	var cluster string
	var wait time.Duration
	var pre, compare bool
	var again watch
	c := &cobra.Command{
		Use:   "check [--pre | --compare EARLIER.tgz LATER.tgz]",
		Short: "Look for problems of the hub, its clusters and their add-ons",
		Example: "  kubectl spokelet check\n  kubectl spokelet check --cluster store-077 --wait 2m\n" +
			"  kubectl spokelet check --compare monday.tgz tuesday.tgz",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case compare && (len(args) != 2 || pre || p.from != ""):
				return fmt.Errorf("%w: --compare takes two bundles and nothing else", errUse)
			case pre && p.from != "":
				return fmt.Errorf("%w: --pre asks a hub, and no bundle", errUse)
			case compare:
				return nil
			}
			return noArgs(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case compare:
				return p.compared(c.Context(), args)
			case pre:
				return p.before(c.Context())
			}
			return p.watched(c.Context(), again, func(ctx context.Context) error { return p.look(ctx, cluster, wait) })
		},
	}
	again.add(c)
	c.Flags().BoolVar(&pre, "pre", false, "say whether Spokelet can be installed on the hub")
	c.Flags().BoolVar(&compare, "compare", false, "say which problems of two bundles are new, and which are gone")
	c.Flags().StringVar(&cluster, "cluster", "", "look at this cluster alone")
	c.Flags().DurationVar(&wait, "wait", 0, "look again until nothing is wrong, for so long")
	c.MarkFlagsMutuallyExclusive("watch", "wait", "pre", "compare")
	return c
}

// checked is the answer of check.
type checked struct {
	// Hub are the judgements of the hub itself; none where one cluster is looked at.
	Hub []report.Finding `json:"hub"`
	// Problems are those of clusters and add-ons.
	Problems []report.Group `json:"problems"`

	fleet report.Fleet
}

// wrong counts what is wrong.
func (c checked) wrong() int {
	wrong, _ := report.Wrong(c.Problems, c.Hub)
	return wrong
}

// look looks for problems, again and again for as long as there are some and the time to wait has not run out.
func (p *Plugin) look(ctx context.Context, cluster string, wait time.Duration) error {
	deadline := p.Now().Add(wait)
	for {
		r, err := p.reader()
		if err != nil {
			return err
		}
		found, err := p.judged(ctx, r, cluster)
		wrong := found.wrong()
		if (err == nil && wrong > 0 || passes(err)) && p.waits(deadline) {
			if err := p.wait(ctx, deadline); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := p.tell(ctx, r, found); err != nil {
			return err
		}
		switch {
		case wrong > 0 && wait > 0:
			return fmt.Errorf("%w: %s left", errOutOfTime, report.Count(wrong, "problem"))
		case wrong > 0:
			return errProblem
		}
		return unread(r)
	}
}

// judged reads and judges a fleet, or one cluster of it, and the hub itself.
func (p *Plugin) judged(ctx context.Context, r *fleet.Reader, cluster string) (checked, error) {
	found := checked{Hub: []report.Finding{}, Problems: []report.Group{}}
	var err error
	if found.fleet, err = wholeFleet(ctx, r, cluster); err != nil {
		return found, err
	}
	found.fleet.Now = p.Now()
	problems := append(absent(found.fleet, r, cluster), report.Problems(found.fleet)...)
	found.Problems = append(found.Problems, report.Groups(problems)...)
	if cluster != "" {
		return found, nil
	}
	if found.Hub, err = facts.Hub(ctx, r, found.fleet.Clusters, p.Now()); found.Hub == nil {
		found.Hub = []report.Finding{}
	}
	return found, err
}

// checkAgain is the pause between two looks of a command with --wait.
const checkAgain = 2 * time.Second

// waits reports whether a command with --wait looks again: a bundle stays what it is.
func (p *Plugin) waits(deadline time.Time) bool { return p.from == "" && p.Now().Before(deadline) }

// wait waits until the next look, or until the deadline.
func (p *Plugin) wait(ctx context.Context, deadline time.Time) error {
	if err := p.Pause(ctx, min(checkAgain, deadline.Sub(p.Now()))); err != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	return nil
}

// pause waits, or returns the error of a context that ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// namesOf names the objects that have problems.
func namesOf(groups []report.Group) []string {
	named := make([]string, 0, len(groups))
	for _, g := range groups {
		named = append(named, g.First.Kind+"/"+g.First.Name)
	}
	return named
}

// tell writes what check found.
func (p *Plugin) tell(ctx context.Context, r *fleet.Reader, found checked) error {
	a := answer{Kind: "check", Hub: r.Source.Name(), Answer: found, Gaps: r.Gaps, names: namesOf(found.Problems)}
	if done, err := p.encoded(a); done {
		return err
	}
	kubernetes, err := r.Source.Version(ctx)
	if err != nil {
		return err
	}
	t := p.terminal()
	err = t.Say("hub %s  Kubernetes %s  %s, %s on them", show.Safe(r.Source.Name()), show.Safe(kubernetes),
		report.Count(len(found.fleet.Clusters), "cluster"), report.Count(len(found.fleet.AddOns), "add-on"))
	if err != nil {
		return err
	}
	if err := errors.Join(t.Findings(found.Hub), t.Gaps(r.Gaps), t.Problems(found.Problems)); err != nil {
		return err
	}
	return t.Say("%s", report.Count(found.wrong(), "problem"))
}
