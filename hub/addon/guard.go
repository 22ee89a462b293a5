package addon

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"
)

// defaultTimeout is how long the functions of an author may take for one cluster. Rendering takes milliseconds; the
// rest is for those that read from somewhere.
const defaultTimeout = 10 * time.Second

// attempt calls functions of an author for a cluster, with a context that ends after Options.Timeout. Errors name the
// add-on and the cluster. A panic is an InvalidError, because the same facts would panic again.
func attempt[T any](
	ctx context.Context, a *author, request Request, call func(ctx context.Context) (T, error),
) (result T, err error) {
	limit := cmp.Or(a.Timeout, defaultTimeout)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
		if err == nil {
			return
		}
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("the functions of the add-on took longer than %v: %w", limit, err)
		}
		var none T
		result, err = none, fmt.Errorf("add-on %s on cluster %s: %w", a.Name, request.Cluster.Name, err)
	}()
	return call(within)
}

// guarded returns a prober whose check survives a panic.
func guarded(addOn string, prober HealthProber) HealthProber {
	if prober.Work == nil || prober.Work.Check == nil {
		return prober
	}
	check, work := prober.Work.Check, *prober.Work
	work.Check = func(request ProbeRequest) (err error) {
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("add-on %s on cluster %s: the health check failed: %w", addOn, request.Cluster.Name,
					panicked(value))
			}
		}()
		return check(request)
	}
	prober.Work = &work
	return prober
}

// panicked returns the error for a panic; it must be called by the function that is deferred.
func panicked(value any) error {
	return &InvalidError{Message: fmt.Sprintf("the program of the add-on panicked%s: %v; this is an error in the program",
		panicSite(), value)}
}

// maxFrames is the number of frames in which the site of a panic is looked for.
const maxFrames = 64

// panicSite returns where the code of the author panicked: " at file:line", or nothing if that is not known.
func panicSite() string {
	var counters [maxFrames]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	panicking := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicking && !inRuntime && frame.File != "" {
			return fmt.Sprintf(" at %s:%d", path.Join(path.Base(path.Dir(frame.File)), path.Base(frame.File)), frame.Line)
		}
		panicking = panicking || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
