package main

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/charmbracelet/bubbles/spinner"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// progress is the moving line of a running step; without a terminal there is none until the step ends.
type progress struct {
	console *console
	// program draws the line; nil where out is not a terminal.
	program *tea.Program
	drawing sync.WaitGroup
	err     error
}

// start draws the moving line of a step; the caller must call finish.
func (c *console) start(head string) *progress {
	p := &progress{console: c}
	if c.columns == nil {
		return p
	}
	model := running{
		head: head, width: c.width, dim: c.dim, spinner: spinner.New(spinner.WithSpinner(spinner.MiniDot)),
	}
	// Input and signals stay with the demo: Ctrl-C ends it in good order.
	p.program = tea.NewProgram(model, tea.WithOutput(c.out), tea.WithInput(nil), tea.WithoutSignalHandler())
	p.drawing.Go(func() {
		if _, err := p.program.Run(); err != nil {
			p.err = fmt.Errorf("drawing at the terminal: %w", err)
		}
	})
	return p
}

// note replaces the text beside the spinner.
func (p *progress) note(text string) {
	if p.program != nil {
		p.program.Send(noteMsg(text))
	}
}

// finish puts the outcome of the step in the place of the moving line.
func (p *progress) finish(outcome func(width int) string) error {
	if p.program == nil {
		_, err := fmt.Fprintln(p.console.out, outcome(p.console.width()))
		return err
	}
	p.program.Send(outcomeMsg(outcome))
	p.drawing.Wait()
	return p.err
}

type (
	// noteMsg is the text beside the spinner from now on.
	noteMsg string
	// outcomeMsg returns the last line of the step in a width.
	outcomeMsg func(width int) string
)

// running is a step as it is drawn: one line that never takes more than the width at that moment.
type running struct {
	head, text string
	width      func() int
	dim        lipgloss.Style
	spinner    spinner.Model
	outcome    outcomeMsg
}

var _ tea.Model = running{}

// Init implements tea.Model.
func (r running) Init() tea.Cmd { return r.spinner.Tick }

// Update implements tea.Model.
func (r running) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case noteMsg:
		r.text = string(msg)
	case outcomeMsg:
		r.outcome = msg
		return r, tea.Quit
	case spinner.TickMsg:
		var next tea.Cmd
		r.spinner, next = r.spinner.Update(msg)
		return r, next
	}
	return r, nil
}

// View implements tea.Model. The line is one column narrower than the terminal, because some go to the next line as
// soon as the last column is written.
func (r running) View() string {
	if r.outcome != nil {
		return r.outcome(r.width()) + "\n"
	}
	line := r.spinner.View() + " " + r.head
	if r.text != "" {
		line += "  " + r.dim.Render(oneLine(r.text))
	}
	return ansi.Truncate(line, r.width()-1, "…")
}

// oneLine returns text without line breaks and other characters that move the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, ansi.Strip(strings.TrimSpace(text)))
}
