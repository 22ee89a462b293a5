package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// Events writes rows of Events. Without headings the rows go on below those that are there.
func (t Terminal) Events(rows []report.Event, headings bool) error {
	p := &page{Terminal: t}
	const format = "%-5s %-7s %5s  %s"
	if headings {
		p.line("%s", p.paint(strong, fmt.Sprintf(format, "LAST", "TYPE", "COUNT", "REASON, OBJECT, MESSAGE")))
	}
	for _, row := range rows {
		head := fmt.Sprintf("%s  %s/%s", p.text(row.Reason), strings.ToLower(p.text(row.Kind)), p.text(row.Name))
		switch len(row.Namespaces) {
		case 0:
		case 1:
			head += " in " + p.text(row.Namespaces[0])
		default:
			head += fmt.Sprintf(" in %d namespaces, first %s", len(row.Namespaces), p.text(row.Namespaces[0]))
		}
		if row.Side == report.SideCluster {
			head += ", on the cluster"
		}
		kind := fmt.Sprintf("%-7s", Fit(p.text(row.Type), 7))
		if row.Type == "Warning" {
			kind = p.paint(dubious, kind)
		}
		p.line("%-5s %s %5s  %s", p.Since(&row.Last), kind, strconv.Itoa(row.Count), Fit(head, p.Width-21))
		p.block(21, row.Message)
	}
	return p.flush()
}
