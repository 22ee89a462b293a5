package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
)

// watch is the flag of a command that answers again and again.
type watch struct{ on bool }

// add adds the flag to a command.
func (w *watch) add(c *cobra.Command) {
	c.Flags().BoolVarP(&w.on, "watch", "w", false, fmt.Sprintf("answer again every %s, until Ctrl-C", answerAgain))
}

// answerAgain is the pause between two answers of a command with --watch.
const answerAgain = 5 * time.Second

// watched answers once, or with --watch until the context ends. Then a hub that does not answer for a while is told,
// and asked again. The answer of a bundle does not change.
func (p *Plugin) watched(ctx context.Context, w watch, do func(context.Context) error) error {
	if !w.on || p.from != "" {
		return do(ctx)
	}
	for p.again = false; ; p.again = true {
		if err := p.attempt(ctx, do); err != nil || p.Pause(ctx, answerAgain) != nil {
			return err // None where a person ends the watch: it has shown what it found.
		}
	}
}

// attempt answers once, and tells what went wrong unless that does not change.
func (p *Plugin) attempt(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if errors.Is(err, errUse) {
		return err
	}
	if err != nil && !errors.Is(err, errProblem) && ctx.Err() == nil {
		p.warn(err)
	}
	return nil
}

// warn tells what went wrong.
func (p *Plugin) warn(err error) {
	p.progress.clear()
	fmt.Fprintf(p.Streams.ErrOut, "%s: %s\n", nameOfProgram, show.Safe(err.Error()))
}

// quiet is how long a command reads before it tells at a terminal what it reads.
const quiet = time.Second

// progress tells what is read, in one line that goes away before the answer. Its zero value tells nothing.
type progress struct {
	out   io.Writer
	now   func() time.Time
	since time.Time
	read  int
	shown bool
}

// told counts objects that were read, and tells it where reading takes long.
func (p *progress) told(resource string, objects int) {
	p.read += objects
	if p.out == nil || p.now().Sub(p.since) < quiet {
		return
	}
	p.shown = true
	fmt.Fprintf(p.out, "\r\x1b[Kreading %s, %d objects so far", show.Safe(resource), p.read)
}

// clear takes the line away.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
