package show

import (
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// Findings writes whether something can be installed.
func (t Terminal) Findings(all []report.Finding) error {
	p := &page{Terminal: t}
	for _, finding := range all {
		p.line("  %s  %-18s  %s", p.state(finding.State)+strings.Repeat(" ", max(4-len(finding.State), 0)), finding.What,
			p.text(finding.Evidence))
		if finding.Next != "" {
			p.block(8, "next: "+finding.Next)
		}
	}
	return p.flush()
}
