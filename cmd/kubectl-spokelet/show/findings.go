package show

import (
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// Findings writes whether something can be installed.
func (t Terminal) Findings(all []report.Finding) error {
	p := &page{Terminal: t}
	const indent = 28
	for _, finding := range all {
		text := p.text(finding.Evidence)
		if finding.Code != "" {
			text += "  [" + string(finding.Code) + "]"
		}
		first, further := folded(text, p.Width-indent)
		mark := p.state(finding.State) + strings.Repeat(" ", max(4-len(finding.State), 0))
		p.line("  %s  %-18s  %s", mark, finding.What, first)
		p.marked(indent, further)
		if finding.Next != "" {
			p.block(8, "next: "+finding.Next)
		}
	}
	return p.flush()
}
