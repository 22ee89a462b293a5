package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// maxWriters is how many writers of an object are shown.
const maxWriters = 3

// Trace writes the way from an object up to who wanted it.
func (t Terminal) Trace(trace report.Trace) error {
	p := &page{Terminal: t}
	name := p.text(message.Object(trace.Kind, trace.Namespace, trace.Name))
	verdict := "was applied by a work"
	for _, link := range trace.Links {
		switch link.Step {
		case "work":
			verdict = "was applied by work " + p.text(link.Name) + " of cluster " + p.text(link.Namespace)
		case "add-on":
			verdict = "was applied for add-on " + p.text(link.Name) + " of cluster " + p.text(link.Namespace)
		}
	}
	if trace.Problem != nil {
		verdict = trace.Problem.Title
	}
	p.line("%s", p.paint(strong, name+": "+verdict))
	side := "none"
	for _, link := range trace.Links {
		if link.Side != side {
			side = link.Side
			if side == report.SideCluster {
				p.line("on the cluster, %s", p.text(trace.Cluster))
			} else {
				p.line("on the hub, %s", p.text(trace.Hub))
			}
		}
		p.link(link)
	}
	if trace.Problem != nil {
		p.line("first cause: %s  [%s]", p.text(trace.Problem.Title), trace.Problem.Code)
		p.quote(2, trace.Problem.Message)
		p.Bundle = p.Bundle && trace.Problem.Code == causes.WorksMissing // Others are about the cluster.
		p.next(0, trace.Problem.Next)
		p.line("doc:  docs/operations/messages.md#%s", strings.ToLower(string(trace.Problem.Code)))
	} else if trace.Hub == "" {
		p.line("next: the same with --hub-context, which leads on from the work")
	}
	return p.flush()
}

// link writes one object of a trace.
func (p *page) link(l report.Link) {
	const name = 12
	what := p.text(message.Object(l.Kind, l.Namespace, l.Name))
	if l.Missing {
		what += "  " + p.paint(bad, "missing")
	}
	p.line("  %-*s %s", name, l.Step, what)
	indent := name + 3
	if l.Evidence != "" {
		p.block(indent, l.Evidence)
	}
	var said []string
	if age := p.Since(l.Made); age != "" {
		said = append(said, "made "+age+" ago")
	}
	var writers []string
	for _, w := range l.Writers[:min(len(l.Writers), maxWriters)] {
		text := w.Manager
		if w.Subresource != "" {
			text += " (" + w.Subresource + ")"
		}
		if age := p.Since(w.At); age != "" {
			text += " " + age + " ago"
		}
		writers = append(writers, text)
	}
	writers = slices.Compact(writers)
	if len(writers) > 0 {
		said = append(said, "written by "+strings.Join(writers, ", "))
	}
	if more := len(l.Writers) - maxWriters; more > 0 {
		said = append(said, fmt.Sprintf("and %d more writers", more))
	}
	if len(said) > 0 {
		p.block(indent, strings.Join(said, "; "))
	}
}
