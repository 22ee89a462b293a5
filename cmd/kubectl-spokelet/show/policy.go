package show

import (
	"fmt"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/message"
)

// policy writes what the policy of an add-on says.
func (p *page) policy(of *report.Policy) {
	p.line("policy: approval %s, %s because of it or of a window", p.text(string(of.Approval)),
		report.WaitsFor(int(of.Waiting)))
	for _, saying := range of.Sayings(p.Now) {
		mark := "    "
		if saying.State == report.Failed || saying.State == report.Warning {
			mark = p.state(saying.State)
		}
		p.item(mark, p.text(saying.Text))
		if saying.Next != "" {
			p.next(8, saying.Next)
		}
	}
}

// window writes a window of an add-on.
func (p *page) window(w report.Window) {
	first, further := folded("window "+p.text(w.Name)+": "+p.text(windowText(w)), p.Width)
	p.line("%s", first)
	p.marked(8, further)
	if w.Problem != "" {
		p.item(p.state(report.Warning), p.text(w.Problem))
	}
}

// windowText says what a window is.
func windowText(w report.Window) string {
	text := fmt.Sprintf("%s, %q for %s by the clock of %s, on %s", w.Kind, w.Schedule, w.Duration, w.Zone,
		report.Count(w.Clusters, "cluster"))
	if w.Active {
		text += ", active now"
	}
	if w.Next != nil {
		text += ", begins next at " + instant(w.Next)
	}
	return text
}

// instant writes an instant to the minute; empty for none.
func instant(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}

// Windows returns the table of windows.
func (t Terminal) Windows(all []report.Window, wide bool) Table {
	table := Table{Headings: []string{"NAME", "KIND", "SCHEDULE", "LASTS", "ZONE", "ACTIVE", "NEXT START", "CLUSTERS"}}
	if wide {
		table.Headings = append(table.Headings, "UNTIL", "ADD-ONS")
	}
	table.Headings = append(table.Headings, "PROBLEM")
	for _, w := range all {
		row := []string{
			w.Name, w.Kind, w.Schedule, w.Duration, w.Zone, fmt.Sprint(w.Active), instant(w.Next), fmt.Sprint(w.Clusters),
		}
		if wide {
			row = append(row, instant(w.Until), addOnsOf(w))
		}
		table.Rows = append(table.Rows, append(row, w.Problem))
	}
	return table
}

// addOnsOf names the add-ons of a window.
func addOnsOf(w report.Window) string {
	if len(w.AddOns) == 0 {
		return "all"
	}
	return message.List(w.AddOns, fewClusters, ", ")
}
