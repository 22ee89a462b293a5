package show

import (
	"fmt"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// Rollout writes how far an add-on is.
func (t Terminal) Rollout(r report.Rollout) error {
	p := &page{Terminal: t}
	verdict := "is not complete"
	switch {
	case len(r.Placements) == 0:
		verdict = "is on no cluster"
	case r.Complete:
		verdict = "is complete"
	case r.Failed > 0:
		verdict = report.Count(r.Failed, "cluster") + " failed"
	}
	p.line("%s", p.paint(strong, "addon/"+p.text(r.AddOn)+": "+verdict))
	if r.Policy != nil {
		p.policy(r.Policy)
	}
	for _, w := range r.Windows {
		p.window(w)
	}
	for _, placement := range r.Placements {
		name := "clusters that no placement selects"
		if placement.Placement != "" {
			name = "placement " + p.text(placement.Placement) + "  " + p.text(placement.Strategy)
		}
		p.line("%s", name)
		if placement.Message != "" {
			text := placement.Reason + ": " + placement.Message
			if age := t.Since(placement.Since); age != "" {
				text += " (since " + age + ")"
			}
			p.block(2, text)
		}
		for _, stages := range placement.Stages {
			p.stages(stages)
		}
	}
	return p.flush()
}

// stages writes the clusters of one stage.
func (p *page) stages(s report.Stages) {
	listed := strings.Join(s.Clusters[:min(fewClusters, len(s.Clusters))], ", ")
	if len(s.Clusters) > fewClusters {
		listed += ", ..."
	}
	color := map[report.Stage]string{
		report.StageFailed: bad, report.StageMoving: dubious, report.StageComplete: good,
	}[s.Stage]
	p.line("  %5d %s  %s", len(s.Clusters), p.paint(color, fmt.Sprintf("%-8s", s.Stage)), p.text(listed))
	p.block(10, s.Message)
}
