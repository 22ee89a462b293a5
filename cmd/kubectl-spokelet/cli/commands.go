package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/version"
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

// look looks for problems, again and again for as long as there are some and the time to wait has not run out.
func (p *Plugin) look(ctx context.Context, cluster string, wait time.Duration) error {
	deadline := p.Now().Add(wait)
	for {
		r, err := p.reader()
		if err != nil {
			return err
		}
		f, err := wholeFleet(ctx, r, cluster)
		if err != nil {
			return err
		}
		groups := report.Groups(report.Problems(f))
		if len(groups) > 0 && p.waits(deadline) {
			if err := p.wait(ctx, deadline); err != nil {
				return err
			}
			continue
		}
		if err := p.checked(ctx, f, r, groups); err != nil {
			return err
		}
		switch {
		case len(groups) > 0 && wait > 0:
			return fmt.Errorf("%w: %d problems are left", errOutOfTime, len(groups))
		case len(groups) > 0:
			return errProblem
		}
		return nil
	}
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

// wholeFleet reads a fleet, or one cluster of it. It is an error where neither clusters nor add-ons can be read.
func wholeFleet(ctx context.Context, r *fleet.Reader, cluster string) (report.Fleet, error) {
	f, err := readFleet(ctx, r, cluster)
	if err == nil && r.Lacks("managedclusters") && r.Lacks("managedclusteraddons") {
		err = fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	return f, err
}

// gapsOf returns the gaps of a reader as an error.
func gapsOf(r *fleet.Reader) error {
	var all []error
	for _, gap := range r.Gaps {
		text := gap.What + ": " + gap.Why
		if gap.Rule != "" {
			text += "; add the rule " + gap.Rule
		}
		all = append(all, errors.New(text))
	}
	return errors.Join(all...)
}

// checked writes what check found.
func (p *Plugin) checked(ctx context.Context, f report.Fleet, r *fleet.Reader, groups []report.Group) error {
	if done, err := p.encoded(answer{Kind: "check", Hub: r.Source.Name(), Answer: groups, Gaps: r.Gaps}); done {
		return err
	}
	if p.output == outputName {
		named := make([]string, 0, len(groups))
		for _, g := range groups {
			named = append(named, g.First.Kind+"/"+g.First.Name)
		}
		slices.Sort(named)
		return p.names(slices.Compact(named))
	}
	kubernetes, err := r.Source.Version(ctx)
	if err != nil {
		return err
	}
	t := p.terminal()
	err = t.Say("hub %s  Kubernetes %s  %d clusters, %d add-ons on them",
		show.Safe(r.Source.Name()), show.Safe(kubernetes), len(f.Clusters), len(f.AddOns))
	if err != nil {
		return err
	}
	if err := errors.Join(t.Gaps(r.Gaps), t.Problems(groups)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Out, "%d problems\n", len(groups))
	return err
}

// bundle returns the command that writes a bundle.
func (p *Plugin) bundle() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "bundle -f FILE", Args: noArgs, Short: "Write what you may read of the fleet into a file for another person",
		Long: "bundle writes clusters, add-ons, works, certificate requests, decisions, leases and Events into a file, " +
			"without Secrets, the content of manifests, certificates and values. All reading commands take it with --from.",
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return fmt.Errorf("%w: -f names the file to write", errUse)
			}
			r, err := p.reader()
			if err != nil {
				return err
			}
			gaps, err := p.writeBundle(c.Context(), r.Source, file)
			if err != nil {
				return err
			}
			return p.terminal().Gaps(gaps)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the file to write")
	return c
}

// writeBundle writes a bundle beside its place first, so that none that is not complete has its name.
func (p *Plugin) writeBundle(ctx context.Context, source fleet.Source, file string) (gaps []fleet.Gap, err error) {
	to, err := os.CreateTemp(filepath.Dir(file), ".bundle-*")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUse, err)
	}
	defer func() { err = errors.Join(err, ignoreGone(os.Remove(to.Name()))) }()
	gaps, err = fleet.WriteBundle(ctx, source, to, p.Now())
	if err = errors.Join(err, to.Close()); err != nil {
		return gaps, err
	}
	return gaps, os.Rename(to.Name(), file)
}

// ignoreGone returns an error unless it says that a file does not exist.
func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// versions returns the command that prints the versions of the plugin and of the hub.
func (p *Plugin) versions() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: noArgs, Short: "Print the version of the plugin",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.Streams.Out, "%s %s\n", nameOfProgram, version.String())
			return err
		},
	}
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: %q is not expected", errUse, args[0])
	}
	return nil
}
