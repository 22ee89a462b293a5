package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
	"k8s.io/utils/clock"
)

const (
	// plainWidth is the width of lines that do not go to a terminal, and the most that running text takes of a wide one.
	plainWidth = 100
	// widest is the most that what a command says takes of a wide terminal.
	widest = 120
	// minWidth is the narrowest terminal that lines are fitted to; in a narrower one they are cut.
	minWidth = 20
	// margin stands before every line that is not a step.
	margin = "    "
	// outcomeWidth is what stands behind the title of a step: a blank, the mark, a blank, the time, and a free column.
	outcomeWidth = 11
	// maxTitle is the widest head of a step, beyond which the mark is not moved to the right any more.
	maxTitle = 80
)

// console prints numbered steps: with a spinner at a terminal, as plain lines elsewhere.
type console struct {
	out io.Writer
	// columns returns the width of the terminal now; nil where out is not a terminal.
	columns func() int
	clock   clock.PassiveClock
	good    lipgloss.Style
	bad     lipgloss.Style
	dim     lipgloss.Style
	steps   int
}

// newConsole returns a console on a file. Colours follow the terminal and NO_COLOR; a terminal that cannot move its
// cursor is treated as a file.
func newConsole(out *os.File) *console {
	var columns func() int
	if fd := int(out.Fd()); term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		columns = func() int {
			width, _, err := term.GetSize(fd)
			if err != nil || width <= 0 {
				return plainWidth
			}
			return width
		}
	}
	return consoleOn(out, columns, lipgloss.NewRenderer(out))
}

// consoleOn returns a console that writes to out in the colours of renderer.
func consoleOn(out io.Writer, columns func() int, renderer *lipgloss.Renderer) *console {
	return &console{
		out: out, columns: columns, clock: clock.RealClock{},
		good: renderer.NewStyle().Foreground(lipgloss.ANSIColor(2)),
		bad:  renderer.NewStyle().Foreground(lipgloss.ANSIColor(1)),
		dim:  renderer.NewStyle().Faint(true),
	}
}

// width returns how many columns a line may take now.
func (c *console) width() int {
	if c.columns == nil {
		return plainWidth
	}
	return max(c.columns(), minWidth)
}

// step runs do as the next numbered step and prints how long it took. do may pass what it waits for to note; at a
// terminal the note stands beside the spinner, elsewhere it is left out.
func (c *console) step(ctx context.Context, title string, do func(ctx context.Context, note func(string)) error) error {
	c.steps++
	head := fmt.Sprintf("%2d. %s", c.steps, title)
	started := c.clock.Now()
	progress := c.start(head)
	err := do(ctx, progress.note)
	took := c.clock.Since(started)
	mark := c.good.Render("✓")
	if err != nil {
		mark = c.bad.Render("✗")
	}
	outcome := func(width int) string { return outcomeLine(width, head, mark, took) }
	if shown := progress.finish(outcome); shown != nil {
		return fmt.Errorf("showing the step %q: %w", title, shown)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	return nil
}

// outcomeLine is the line of a step that ended: it fits the width, with the mark in the same column for all titles.
func outcomeLine(width int, head, mark string, took time.Duration) string {
	room := min(maxTitle, width-outcomeWidth)
	head = ansi.Truncate(head, room, "…")
	return fmt.Sprintf("%s%s %s %7s", head, strings.Repeat(" ", room-ansi.StringWidth(head)), mark, seconds(took))
}

// line prints text below the last step, wrapped to the width.
func (c *console) line(format string, args ...any) {
	for _, part := range wrap(fmt.Sprintf(format, args...), min(c.width(), plainWidth)-len(margin)) {
		fmt.Fprintln(c.out, strings.TrimRight(margin+part, " "))
	}
}

// wrap breaks text into lines of a width at its blanks. A hyphen is not a place to break: names of objects have many,
// and nobody could copy them.
func wrap(text string, width int) []string {
	const unbreakable = "\u2011"
	text = ansi.Wrap(strings.ReplaceAll(text, "-", unbreakable), width, "")
	return strings.Split(strings.ReplaceAll(text, unbreakable, "-"), "\n")
}

// command prints a command of a shell below the last step. One that is too wide goes on in the next line, behind a
// backslash, so that it can be copied.
func (c *console) command(format string, args ...any) {
	const indent, more = margin + "  ", margin + "      "
	line, width := indent, c.width()
	for i, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		if i > 0 {
			if ansi.StringWidth(line)+ansi.StringWidth(word)+len("  \\") > width {
				fmt.Fprintln(c.out, line+" \\")
				line = more
			} else {
				line += " "
			}
		}
		line += word
	}
	fmt.Fprintln(c.out, line)
}

// quote prints what a command said, line by line, as it came.
func (c *console) quote(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(c.out, strings.TrimRight(margin+line, " \n"))
	}
}

// seconds prints a duration the way people read it: 0.42s, 12.3s.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
