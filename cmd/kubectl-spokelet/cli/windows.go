package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// windows reads and writes the list of MaintenanceWindows.
func (p *Plugin) windows(ctx context.Context, notReady bool) error {
	r, err := p.reader()
	if err != nil {
		return err
	}
	all, err := fleet.List[fleet.Window](ctx, r, fleet.Query{})
	if err != nil {
		return err
	}
	if len(all) == 0 && len(r.Gaps) > 0 {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	found := report.WindowsOf(all, "")
	if notReady {
		found = slices.DeleteFunc(found, func(w report.Window) bool { return w.Problem == "" })
	}
	named := []string{}
	for _, w := range found {
		named = append(named, "maintenancewindow/"+w.Name)
	}
	done, err := p.encoded(answer{
		Kind: "windows", Hub: r.Source.Name(), Answer: append([]report.Window{}, found...), Gaps: r.Gaps, names: named,
	})
	if done || err != nil {
		return err
	}
	t := p.terminal()
	return errors.Join(t.Table(t.Windows(found, p.output == outputWide)), t.Gaps(r.Gaps))
}
