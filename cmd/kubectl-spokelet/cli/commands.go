package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/version"
)

// wholeFleet reads a fleet, or one cluster of it. It is an error where neither clusters nor add-ons can be read.
func wholeFleet(ctx context.Context, r *fleet.Reader, cluster string) (report.Fleet, error) {
	f, err := facts.Fleet(ctx, r, cluster)
	if err == nil && r.Lacks("managedclusters") && r.Lacks("managedclusteraddons") {
		err = fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	return f, err
}

// gapsOf returns the gaps of a reader as an error.
func gapsOf(r *fleet.Reader) error {
	var all []error
	for _, gap := range r.Gaps {
		text := cmp.Or(gap.Undecoded(), gap.What) + ": " + gap.Why
		if gap.Rule != "" {
			text += "; add the rule " + gap.Rule
		}
		all = append(all, errors.New(text))
	}
	return errors.Join(all...)
}

// bundle returns the command that writes a bundle.
func (p *Plugin) bundle() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "bundle -f FILE", Args: noArgs, Short: "Write what you may read of the fleet into a file for another person",
		Long: "bundle writes clusters, add-ons, works, certificate requests, decisions, leases, Events, policies and " +
			"windows into a file, without Secrets, the content of manifests, certificates and values. All reading commands " +
			"take it with --from.",
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
			return p.terminal().Gaps(fleet.WithoutOffered(gaps))
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
			if err := p.validOutput(); err != nil {
				return err
			}
			of := map[string]string{"version": version.String()}
			done, err := p.encoded(answer{Kind: "version", Answer: of, names: []string{version.String()}})
			if !done {
				_, err = fmt.Fprintf(p.Streams.Out, "%s %s\n", nameOfProgram, version.String())
			}
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
