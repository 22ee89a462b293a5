package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// compared writes what differs between the problems of two bundles, the earlier one first.
func (p *Plugin) compared(ctx context.Context, files []string) error {
	if err := p.validOutput(); err != nil {
		return err
	}
	var problems [2][]report.Problem
	var taken [2]time.Time
	for i, file := range files {
		bundle, err := fleet.OpenBundle(file)
		if err != nil {
			return fmt.Errorf("%w: %w", errBlind, err)
		}
		f, err := readFleet(ctx, &fleet.Reader{Source: bundle}, "")
		if err != nil {
			return err
		}
		problems[i], taken[i] = report.Problems(f), bundle.Taken()
	}
	p.Now = func() time.Time { return taken[1] }
	c := report.Compare(problems[0], problems[1])
	done, err := p.encoded(answer{Kind: "compare", Hub: files[1], Answer: c})
	if !done && err == nil {
		t := p.terminal()
		for _, part := range []struct {
			title  string
			groups []report.Group
		}{{"new", c.New}, {"gone", c.Gone}, {"in both", c.Same}} {
			_, failed := fmt.Fprintf(t.Out, "%s: %d problems\n", part.title, len(part.groups))
			if err = errors.Join(err, failed); len(part.groups) > 0 {
				err = errors.Join(err, t.Problems(part.groups))
			}
		}
	}
	if err == nil && len(c.New)+len(c.Gone) > 0 {
		return errProblem
	}
	return err
}
