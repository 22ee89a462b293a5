package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/hinshun/vt10x"
	"github.com/muesli/termenv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentence is longer than any line.
const sentence = "cluster1: NamespaceNotFound: The namespace open-cluster-management-agent-addon does not exist on the " +
	"managed cluster, so neither the credential nor the Deployment of the add-on can be there yet; it comes with a work"

// screen is a virtual terminal that is high enough to keep all that was ever written.
type screen struct {
	vt10x.Terminal
	mu   sync.Mutex
	wide int
}

func newScreen(columns int) *screen {
	return &screen{Terminal: vt10x.New(vt10x.WithSize(columns, 300)), wide: columns}
}

// Write turns line feeds into new lines, as the driver of a terminal does.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.Terminal.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *screen) columns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wide
}

func (s *screen) resize(columns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wide = columns
	s.Resize(columns, 300)
}

// lines returns what the screen shows, without empty lines at its end.
func (s *screen) lines() []string {
	lines := strings.Split(strings.TrimRight(s.String(), " \n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// console returns a console on the screen, in colours.
func (s *screen) console() *console {
	renderer := lipgloss.NewRenderer(s, termenv.WithProfile(termenv.ANSI))
	return consoleOn(s, s.columns, renderer)
}

// wait fails the test unless the screen shows text before long.
func (s *screen) wait(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.String(), text) }, 30*time.Second, time.Millisecond,
		"the screen shows no %q", text)
}

func TestAStepTakesOneLineFromFirstToLast(t *testing.T) {
	for _, columns := range []int{80, 100, 130, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			s := newScreen(columns)
			c := s.console()
			titles := (&demo{}).steps()
			for i, step := range titles {
				err := c.step(t.Context(), step.title, func(_ context.Context, note func(string)) error {
					for turn := range 5 {
						note(fmt.Sprintf("%d.%d %s", i, turn, sentence))
						s.wait(t, fmt.Sprintf("%d.%d cluster1", i, turn))
						assert.Len(t, s.lines(), i+1, "a step that runs takes one line")
					}
					return nil
				})
				require.NoError(t, err)
			}
			lines := s.lines()
			require.Len(t, lines, len(titles))
			for i, line := range lines {
				assert.True(t, strings.HasPrefix(line, fmt.Sprintf("%2d. %s", i+1, titles[i].title)), line)
				assert.Contains(t, line, "✓")
				assert.Less(t, ansi.StringWidth(line), columns)
			}
		})
	}
}

func TestAStepKeepsItsLineWhenTheTerminalIsResized(t *testing.T) {
	s := newScreen(200)
	c := s.console()
	err := c.step(t.Context(), "Resizing", func(_ context.Context, note func(string)) error {
		for i, columns := range []int{120, 80, 160, 90} {
			s.resize(columns)
			note(fmt.Sprintf("%d %s", i, sentence))
			s.wait(t, fmt.Sprintf("Resizing  %d cluster1", i))
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, c.step(t.Context(), "After it", func(context.Context, func(string)) error { return nil }))
	lines := s.lines()
	require.Len(t, lines, 2, "no copy of a line stays")
	assert.Contains(t, lines[0], " 1. Resizing")
	assert.Contains(t, lines[1], " 2. After it")
}

func TestAStepThatFailsSaysSoInItsLine(t *testing.T) {
	s := newScreen(80)
	err := s.console().step(t.Context(), "Failing", func(_ context.Context, note func(string)) error {
		note(sentence)
		return errors.New("no")
	})
	require.EqualError(t, err, "Failing: no")
	require.Len(t, s.lines(), 1)
	assert.Regexp(t, `^ 1\. Failing +✗ +0\.\d\ds$`, s.lines()[0])
}

func TestWhatACommandSaysIsShownAsItCame(t *testing.T) {
	var out strings.Builder
	c := consoleOn(&out, nil, lipgloss.NewRenderer(&out))
	c.quote("web\n  ✗ cluster2\n\n  " + sentence + "\n")
	assert.Equal(t, "    web\n      ✗ cluster2\n\n      "+sentence+"\n", out.String())
}

func TestTextAndCommandsFitTheWidth(t *testing.T) {
	s := newScreen(80)
	c := s.console()
	c.line("%s", sentence)
	words := "kubectl --kubeconfig /tmp/" + strings.Repeat("a", 30) + " get deployments,secrets,leases -n " +
		"open-cluster-management-agent-addon"
	c.command("%s", words)
	lines := s.lines()
	require.Len(t, lines, 6)
	for _, line := range lines {
		assert.LessOrEqual(t, ansi.StringWidth(line), 80)
	}
	joined := strings.ReplaceAll(strings.Join(lines[4:], "\n"), "\\\n", "")
	assert.Equal(t, words, strings.Join(strings.Fields(joined), " "), "a copied command is the command")
}

func TestColoursFollowTheTerminalAndNoColor(t *testing.T) {
	show := func() string {
		var out strings.Builder
		// A writer that is not a file gets colours only where CLICOLOR_FORCE asks for them.
		c := consoleOn(&out, nil, lipgloss.NewRenderer(&out))
		require.NoError(t, c.step(t.Context(), "Step", func(context.Context, func(string)) error { return nil }))
		return out.String()
	}
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	t.Setenv("CLICOLOR_FORCE", "1")
	assert.Contains(t, show(), "\x1b[32m✓\x1b[0m")
	t.Setenv("NO_COLOR", "1")
	assert.NotContains(t, show(), "\x1b")
}

func TestWithoutATerminalAStepIsOnePlainLine(t *testing.T) {
	var out strings.Builder
	c := consoleOn(&out, nil, lipgloss.NewRenderer(&out))
	require.NoError(t, c.step(t.Context(), "Step", func(_ context.Context, note func(string)) error {
		note(sentence)
		return nil
	}))
	assert.Regexp(t, `^ 1\. Step +✓   0\.\d\ds\n$`, out.String())
}
