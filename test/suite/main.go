package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/test/sandbox"
)

// T holds what this package needs of a test. *testing.T has it; Main gives one to the preparation of a package.
type T interface {
	Helper()
	Context() context.Context
	// Cleanup calls a function when the test, or the package, has ended.
	Cleanup(stop func())
	// TempDir returns a new directory that is removed at the end.
	TempDir() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	FailNow()
	Failed() bool
}

// Main prepares a package, runs its tests, cleans up and exits.
func Main(m *testing.M, prepare func(t T)) {
	ctrl.SetLogger(newLog().Logger())
	p := &preparation{}
	os.Exit(sandbox.Main(runner{m, p}, func(ctx context.Context) (func(), error) {
		p.ctx = ctx
		var done sync.WaitGroup
		done.Go(func() { prepare(p) })
		done.Wait()
		if p.Failed() {
			return p.cleanUp, errors.New("the preparation failed")
		}
		return p.cleanUp, nil
	}))
}

// runner tells the preparation that a test failed.
type runner struct {
	tests *testing.M
	p     *preparation
}

// Run implements sandbox.Runner.
func (r runner) Run() int {
	code := r.tests.Run()
	if code != 0 {
		r.p.failed.Store(true)
	}
	return code
}

// preparation is the T of a whole package.
type preparation struct {
	ctx    context.Context //nolint:containedctx // as that of a test
	failed atomic.Bool

	mu    sync.Mutex
	stops []func()
}

func (p *preparation) Helper()                  {}
func (p *preparation) Context() context.Context { return p.ctx }
func (p *preparation) Failed() bool             { return p.failed.Load() }

func (p *preparation) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (p *preparation) Errorf(format string, args ...any) {
	p.failed.Store(true)
	p.Logf(format, args...)
}

func (p *preparation) FailNow() {
	p.failed.Store(true)
	runtime.Goexit()
}

func (p *preparation) Cleanup(stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops = append(p.stops, stop)
}

func (p *preparation) TempDir() string {
	dir, err := os.MkdirTemp("", "spokelet-suite-")
	if err != nil {
		p.Errorf("making a directory: %v", err)
		p.FailNow()
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.Logf("removing a directory: %v", err)
		}
	})
	return dir
}

// cleanUp calls the functions that Cleanup received, the last one first.
func (p *preparation) cleanUp() {
	p.mu.Lock()
	stops := p.stops
	p.stops = nil
	p.mu.Unlock()
	for i := len(stops) - 1; i >= 0; i-- {
		stops[i]()
	}
}
