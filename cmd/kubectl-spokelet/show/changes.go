package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/change"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

const (
	// fewClusters is how many clusters of a group are named.
	fewClusters = 3
	// fewLines is how many lines of a value are shown.
	fewLines = 6
)

// Changes writes what a change of an add-on would do to a fleet of so many clusters.
func (t Terminal) Changes(addOn string, clusters int, groups []change.Group, rollouts []change.Rollout) error {
	p := &page{Terminal: t}
	p.line("%s", p.paint(strong, fmt.Sprintf("addon/%s on %s: %s; compared with what the hub wants now", p.text(addOn),
		report.Count(clusters, "cluster"), report.Count(len(groups), "different result"))))
	for _, group := range groups {
		p.group(group)
	}
	if !slices.ContainsFunc(groups, change.Group.Changes) {
		p.line("nothing changes")
	}
	for _, r := range rollouts {
		p.line("%s", p.rollout(r))
	}
	return p.flush()
}

// group writes the differences of some clusters.
func (p *page) group(group change.Group) {
	names := group.Clusters[:min(fewClusters, len(group.Clusters))]
	listed := strings.Join(names, ", ")
	if len(names) < len(group.Clusters) {
		listed += ", ..."
	}
	p.line("%s (%s)", report.Count(len(group.Clusters), "cluster"), p.text(listed))
	if !group.Changes() {
		p.line("  it is not deployed, before and after")
		p.block(4, group.Problem)
		return
	}
	if group.Problem != "" {
		p.line("  %s  it would not be deployed", p.paint(bad, "FAIL   "))
		p.block(11, group.Problem)
		return
	}
	if group.Before != "" {
		p.line("  it is not deployed now")
		p.block(4, group.Before)
	}
	for _, d := range group.Differences {
		word, color := fmt.Sprintf("%-7s", d.Kind), plain
		switch d.Kind {
		case change.Removed:
			word, color = "REMOVED", bad
		case change.Added:
			color = good
		case change.Changed:
			color = dubious
		}
		lines := Wrap(p.text(d.What), p.Width-11)
		p.line("  %s  %s", p.paint(color, word), lines[0])
		for _, line := range lines[1:] {
			p.line("%s%s", strings.Repeat(" ", 11), line)
		}
		for _, field := range d.Fields {
			p.block(11, field.Path)
			p.value(bad, "- ", field.From)
			p.value(good, "+ ", field.To)
		}
	}
}

// value writes the first lines of a value, which may be text of anybody.
func (p *page) value(color, sign, value string) {
	if value == "" {
		return
	}
	lines := strings.Split(value, "\n")
	for i, line := range lines {
		if i == fewLines {
			p.line("%s%s... %d more lines", strings.Repeat(" ", 13), sign, len(lines)-i)
			return
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		safe := Fit(strings.Repeat(" ", indent)+p.text(line), p.Width-15)
		p.line("%s%s", strings.Repeat(" ", 13), p.paint(color, sign+safe))
	}
}

// rollout describes how a change moves.
func (p *page) rollout(r change.Rollout) string {
	of := "placement " + p.text(r.Placement) + ": "
	soonest := ""
	if r.Soonest >= time.Second {
		soonest = ", at the soonest in " + duration.HumanDuration(r.Soonest)
	}
	total, largest := 0, 0
	for _, size := range r.Waves {
		total, largest = total+size, max(largest, size)
	}
	switch {
	case r.Stops != "":
		return of + "nothing moves: " + p.text(r.Stops)
	case len(r.Waves) == 1:
		return of + report.Count(total, "cluster") + " would move at once" + soonest
	}
	return of + report.Count(total, "cluster") +
		fmt.Sprintf(" would move in %d waves of %d at most%s", len(r.Waves), largest, soonest)
}
