package suite

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// logVariable names the variable of the environment with the file that receives the logs of all programs.
const logVariable = "TEST_LOG"

// Program is a hub manager or an agent that runs in the process of the test. It can be stopped and started again.
type Program struct {
	// Log holds what it logs.
	Log *Log

	name string
	// base is the context of its runs: that of the test, without its end.
	base context.Context //nolint:containedctx // a program outlives the call that starts it
	run  func(ctx context.Context) error
	// restarting is held between the end and the next start, of which there may be one.
	restarting sync.Mutex

	mu    sync.Mutex
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// StartProgram runs a program until Stop is called or the test ends. If the test failed by then, it shows the end of
// the log. A program that ends with an error after it was stopped fails the test.
func StartProgram(t T, name string, run func(ctx context.Context) error) *Program {
	t.Helper()
	p := &Program{Log: newLog(), name: name, base: context.WithoutCancel(t.Context()), run: run}
	p.Start()
	t.Cleanup(func() {
		p.Stop()
		if err := p.Err(); err != nil {
			t.Errorf("%s ended: %v", name, err)
		}
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, p.Log.tail())
		}
	})
	return p
}

// StartManager runs the controllers of a manager as StartProgram does.
func StartManager(t T, name string, mgr manager.Manager) *Program {
	t.Helper()
	p := StartProgram(t, name, mgr.Start)
	require.True(t, mgr.GetCache().WaitForCacheSync(t.Context()), "the cache of %s must sync", name)
	return p
}

// Start starts the program again after Stop, or after it ended.
func (p *Program) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, stop := context.WithCancel(ctrl.LoggerInto(p.base, p.Log.Logger()))
	ended := make(chan struct{})
	p.stop, p.ended = stop, ended
	go func() {
		defer close(ended)
		if err := p.run(ctx); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.err = err
			fmt.Fprintf(p.Log, "%s ended: %v\n", p.name, err)
		}
	}()
}

// Stop ends the program and returns when it has ended. It may be called more than once.
func (p *Program) Stop() {
	p.mu.Lock()
	stop, ended := p.stop, p.ended
	p.mu.Unlock()
	stop()
	<-ended
}

// Restart ends the program and starts it again. Several tests may do so at a time: each gets a program that began after
// it asked.
func (p *Program) Restart() {
	p.restarting.Lock()
	defer p.restarting.Unlock()
	p.Stop()
	p.Start()
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Err returns the last error that the program ended with.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Log keeps the log of a program.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
	to   io.Writer
}

func newLog() *Log {
	l := &Log{to: io.Discard}
	if path := os.Getenv(logVariable); path != "" {
		file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintf(os.Stderr, "no log in %s: %v\n", path, err)
			return l
		}
		l.to = file
	}
	return l
}

// Logger returns a logger that writes here, a JSON object per line.
func (l *Log) Logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.Level(-1)}))
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(line)
	return l.text.Write(line)
}

// String returns all that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text was logged.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// tail returns the last lines.
func (l *Log) tail() string {
	const most = 200
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "")
}
