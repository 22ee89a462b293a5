package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// frames are the pictures of the spinner, shown in turn.
var frames = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// console prints numbered steps: with a spinner at a terminal, as plain lines elsewhere.
type console struct {
	out   io.Writer
	tty   bool
	clock clock.WithTicker
	steps int
}

// step runs do as the next numbered step and prints how long it took. do may tell what it waits for through note;
// at a terminal the note stands beside the spinner, elsewhere it is left out.
func (c *console) step(ctx context.Context, title string, do func(ctx context.Context, note func(string)) error) error {
	c.steps++
	head := fmt.Sprintf("%2d. %s", c.steps, title)
	started := c.clock.Now()
	spin := c.spin(head)
	err := do(ctx, spin.note)
	spin.stop()
	took := c.clock.Since(started)
	if err != nil {
		fmt.Fprintf(c.out, "%s  %s  after %s\n", head, c.paint("31", "✗"), seconds(took))
		return fmt.Errorf("%s: %w", title, err)
	}
	fmt.Fprintf(c.out, "%-80s %s %7s\n", head, c.paint("32", "✓"), seconds(took))
	return nil
}

// line prints one line below the last step.
func (c *console) line(format string, args ...any) {
	fmt.Fprintf(c.out, "    "+format+"\n", args...)
}

// paint colours text at a terminal and leaves it alone elsewhere; code is the number of an ANSI colour.
func (c *console) paint(code, text string) string {
	if !c.tty {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// spinner is the moving line of a running step; its zero value is silent.
type spinner struct {
	mu   sync.Mutex
	text string
	stop func()
}

func (s *spinner) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

// spin starts the moving line; the caller must call stop.
func (c *console) spin(head string) *spinner {
	s := &spinner{stop: func() {}}
	if !c.tty {
		return s
	}
	done, ended := make(chan struct{}), make(chan struct{})
	s.stop = func() {
		close(done)
		<-ended
		fmt.Fprint(c.out, "\r\x1b[2K")
	}
	ticker := c.clock.NewTicker(100 * time.Millisecond)
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for i := 0; ; i++ {
			s.mu.Lock()
			text := s.text
			s.mu.Unlock()
			fmt.Fprintf(c.out, "\r\x1b[2K%s %s %s", frames[i%len(frames)], head, c.paint("2", text))
			select {
			case <-done:
				return
			case <-ticker.C():
			}
		}
	}()
	return s
}

// seconds prints a duration the way people read it: 0.42s, 12.3s.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
