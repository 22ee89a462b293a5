package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// page collects lines and writes them at once, so that an error of the writer is seen in one place.
type page struct {
	Terminal

	lines strings.Builder
}

// line adds a line.
func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.lines, format+"\n", args...) }

// block adds a text of an object in lines that begin with an indent.
func (p *page) block(indent int, text string) {
	for _, line := range Wrap(p.text(text), p.Width-indent) {
		p.line("%s%s", strings.Repeat(" ", indent), line)
	}
}

// quote adds a text of an object as block does, each line behind a mark that no text can leave out: else the writer of
// the text could break it so that one of its lines looks like one of the program, such as a next command.
func (p *page) quote(indent int, text string) {
	p.marked(indent, Wrap(p.text(text), p.Width-indent-markWidth))
}

// marked adds lines with text of an object behind the mark.
func (p *page) marked(indent int, lines []string) {
	for _, line := range lines {
		p.line("%s%s%s", strings.Repeat(" ", indent), p.mark(), line)
	}
}

// markWidth is how many characters a mark has.
const markWidth = 2

// mark stands at the left of each line of a text of an object.
func (t Terminal) mark() string {
	if t.ASCII {
		return "| "
	}
	return "│ "
}

// item adds a line of a list behind its mark of four characters. One that is too wide goes on below, as a text of an
// object, which may be a part of it.
func (p *page) item(mark, text string) {
	const indent = 8
	first, further := folded(text, p.Width-indent)
	p.line("  %s  %s", mark, first)
	p.marked(indent, further)
}

// folded breaks a text that is too wide into a first line, and further ones that have place for a mark.
func folded(text string, width int) (first string, further []string) {
	if cells(text) <= width {
		return text, nil
	}
	lines := Wrap(text, width)
	return lines[0], Wrap(strings.Join(lines[1:], " "), width-markWidth)
}

// next adds the line that says what to do. What a bundle says is to be done on another hub than that of the kubeconfig.
func (p *page) next(indent int, text string) {
	p.line("%s%s%s", strings.Repeat(" ", indent), p.nextWord(), p.text(text))
}

// nextWord is how a line begins that says what to do.
func (t Terminal) nextWord() string {
	if t.Bundle {
		return "next, on the hub of the bundle: "
	}
	return "next: "
}

// Say writes a line, broken where it is too wide. Text of objects in it has to be safe.
func (t Terminal) Say(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if cells(text) > t.Width {
		text = strings.Join(Wrap(text, t.Width), "\n")
	}
	_, err := fmt.Fprintln(t.Out, text)
	return err
}

// flush writes the page.
func (p *page) flush() error {
	_, err := fmt.Fprint(p.Out, p.lines.String())
	return err
}

// Chain writes a chain of steps and its first cause.
func (t Terminal) Chain(c report.Chain) error {
	p := &page{Terminal: t}
	name := c.Kind + "/" + c.Name
	if c.Namespace != "" {
		name += " on " + c.Namespace
	}
	verdict := "is well"
	if c.Problem != nil {
		verdict = c.Problem.Title
		if age := t.Since(c.Problem.Since); age != "" {
			verdict += ", since " + age
		}
	}
	head, further := folded(p.text(name)+": "+p.text(verdict), p.Width)
	p.line("%s", p.paint(strong, head))
	p.marked(0, further)
	for i, step := range c.Steps {
		if step.Side != "" && (i == 0 || c.Steps[i-1].Side == "") {
			p.line("on the cluster, %s", p.text(c.Looked))
		}
		p.step(i+1, step)
	}
	if c.Problem != nil {
		p.line("first cause: %s  [%s]", p.text(c.Problem.Title), c.Problem.Code)
		if !slices.ContainsFunc(c.Steps, func(s report.Step) bool { return s.Detail == c.Problem.Message }) {
			p.quote(2, c.Problem.Message)
		}
		if c.Same > 0 {
			p.line("  %d other clusters have the same trouble with it", c.Same)
		}
		p.next(0, c.Problem.Next)
		p.line("doc:  docs/operations/messages.md#%s", strings.ToLower(string(c.Problem.Code)))
	}
	return p.flush()
}

// stepWidth is the width of the evidence of a step at most.
const stepWidth = 78

// step writes one step.
func (p *page) step(number int, step report.Step) {
	const name = 12
	width := min(p.Width-name-12, stepWidth)
	evidence := columns([]string{Fit(p.text(step.Evidence), width)}, []int{width})
	p.line("%2d %-*s %s%s", number, name, step.Name, evidence, p.state(step.State))
	if step.State == report.Failed || step.State == report.Warning {
		p.quote(6, step.Detail)
	}
	for _, line := range step.Lines {
		p.quote(6, line)
	}
}

// state writes a state in its colour.
func (p *page) state(s report.State) string {
	switch s {
	case report.OK:
		return p.paint(good, string(s))
	case report.Failed:
		return p.paint(bad, string(s))
	case report.Warning:
		return p.paint(dubious, string(s))
	case report.Waiting:
	}
	return string(s)
}

// Problems writes a list of problems: equal ones of one add-on are one row with the number of its clusters.
func (t Terminal) Problems(groups []report.Group) error {
	p := &page{Terminal: t}
	for _, g := range groups {
		p.item(p.paint(bad, "FAIL"), fmt.Sprintf("%s  %s  [%s]", p.text(g.Name()), p.text(g.First.Title), g.First.Code))
		if age := t.Since(g.First.Since); age != "" {
			p.line("        since %s", age)
		}
		p.quote(8, g.First.Message)
		p.next(8, g.First.Next)
	}
	return p.flush()
}

// Gaps writes what could not be read.
func (t Terminal) Gaps(gaps []fleet.Gap) error {
	p := &page{Terminal: t}
	for _, g := range gaps {
		what, of, code := p.text(g.What), "hub", "["+string(report.CodeOf(g))+"]"
		if g.Cluster {
			what, of = "on the cluster: "+what, "cluster"
		}
		switch {
		case len(g.Objects) > 0:
			if g.What = p.text(g.Undecoded()); g.Cluster {
				g.What = "on the cluster: " + g.What
			}
			p.item(p.paint(dubious, "warn"), g.What)
			p.quote(8, g.Why)
		case g.Silent:
			p.item(p.paint(dubious, "warn"), p.text(g.What)+" does not answer  "+code)
			p.quote(8, g.Why)
		case g.Refused:
			p.item(p.paint(dubious, "warn"), p.text(g.What)+" does not accept your credential  "+code)
			p.quote(8, g.Why)
		case g.Missing:
			p.item(p.paint(dubious, "warn"), fmt.Sprintf("%s: the %s does not serve it  %s", what, of, code))
		default:
			p.item(p.paint(dubious, "warn"), what+" may not be read  "+code)
			p.line("        add the rule %s", p.text(g.Rule))
		}
	}
	return p.flush()
}

// Tree writes a tree.
func (t Terminal) Tree(root report.Node) error {
	table := Table{Headings: []string{"FLEET", "READY", "SINCE", "CODE", "MESSAGE"}, Lines: treeLines, Quotes: true}
	t.branch(&table, root, "", "")
	return t.Table(table)
}

// treeLines is how many lines the message of a row of a tree takes at most.
const treeLines = 6

// branch adds a node and what is below it.
func (t Terminal) branch(table *Table, n report.Node, before, below string) {
	table.Rows = append(table.Rows, []string{n.Name, n.Ready, t.Since(n.Since), string(n.Code), n.Message})
	table.Branches = append(table.Branches, before)
	tee, corner, bar := "├─ ", "└─ ", "│  "
	if t.ASCII {
		tee, corner, bar = "|- ", "`- ", "|  "
	}
	on := below
	if len(n.Children) > 0 {
		on += bar
	}
	table.Below = append(table.Below, on)
	for i, child := range n.Children {
		mark, next := tee, bar
		if i == len(n.Children)-1 {
			mark, next = corner, "   "
		}
		t.branch(table, child, below+mark, below+next)
	}
}
