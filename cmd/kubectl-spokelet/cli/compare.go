package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// compared writes what differs between the problems of two bundles, the earlier one first.
func (p *Plugin) compared(ctx context.Context, files []string) error {
	if err := p.validOutput(); err != nil {
		return err
	}
	var readers [2]*fleet.Reader
	var fleets [2]report.Fleet
	for i, file := range files {
		bundle, err := fleet.OpenBundle(file)
		if err != nil {
			return fmt.Errorf("%w: %w", errBlind, err)
		}
		readers[i] = &fleet.Reader{Source: bundle}
		if fleets[i], err = wholeFleet(ctx, readers[i], ""); err != nil {
			return err
		}
		p.Now = bundle.Taken
	}
	var gaps []fleet.Gap
	for i, r := range readers {
		for j := range fleets {
			fleets[j] = known(fleets[j], r)
		}
		for _, gap := range r.Gaps {
			gap.What += " of " + files[i]
			gaps = append(gaps, gap)
		}
	}
	c := report.Compare(report.Problems(fleets[0]), report.Problems(fleets[1]))
	done, err := p.encoded(answer{Kind: "compare", Hub: files[1], Answer: c, Gaps: gaps, names: namesOf(c.New)})
	if !done && err == nil {
		t := p.terminal()
		t.Bundle = true
		for _, part := range []struct {
			title  string
			groups []report.Group
		}{{"new", c.New}, {"gone", c.Gone}, {"in both", c.Same}} {
			_, failed := fmt.Fprintf(t.Out, "%s: %d problems\n", part.title, len(part.groups))
			if err = errors.Join(err, failed); len(part.groups) > 0 {
				err = errors.Join(err, t.Problems(part.groups))
			}
		}
		err = errors.Join(err, t.Gaps(gaps))
	}
	switch {
	case err != nil:
		return err
	case len(c.New)+len(c.Gone) > 0:
		return errProblem
	}
	return errors.Join(unread(readers[0]), unread(readers[1]))
}

// known returns a fleet without what a reader could not read: whether problems of that are new or gone is not known.
func known(f report.Fleet, r *fleet.Reader) report.Fleet {
	lacks := func(plural string, m fleet.Meta) bool { return r.LacksObject(plural, fleet.KeyOf(m.Namespace, m.Name)) }
	f.Clusters = slices.DeleteFunc(f.Clusters, func(c fleet.Cluster) bool { return lacks("managedclusters", c.Metadata) })
	f.AddOns = slices.DeleteFunc(f.AddOns, func(a fleet.AddOn) bool { return lacks("managedclusteraddons", a.Metadata) })
	f.Definitions = slices.DeleteFunc(f.Definitions, func(d fleet.Definition) bool {
		return lacks("clustermanagementaddons", d.Metadata)
	})
	f.Requests = slices.DeleteFunc(f.Requests, func(q fleet.Request) bool {
		return lacks("certificatesigningrequests", q.Metadata)
	})
	before := f.Undecoded
	f.Undecoded = func(cluster string) bool { return before(cluster) || r.LacksObject("managedclusters", cluster) }
	return f
}
