package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/message"
)

// RegisterMetric registers a collector and returns the one to use: the collector itself, or an equal one that was
// registered before, as by an earlier run in the same process. A nil registerer registers nothing.
func RegisterMetric[C prometheus.Collector](registerer prometheus.Registerer, collector C) (C, error) {
	if registerer == nil {
		return collector, nil
	}
	err := registerer.Register(collector)
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering a metric: %w", err)
	}
	return collector, nil
}

// PanicError is a panic of our own code as an error.
type PanicError struct {
	// Cause is the value of the panic as text.
	Cause string
}

// Error includes what a person can do about it.
func (e *PanicError) Error() string {
	return fmt.Sprintf("the agent failed, which is a defect of it: %s; its log has the details",
		message.Cut(e.Cause, message.MaxCause))
}

// Contain runs a function in a goroutine of ours, where controller-runtime recovers nothing. A panic is logged with its
// stack and becomes the error of the one thing that the function is about, so that one object cannot stop the program.
func Contain(ctx context.Context, about string, run func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			said := describePanic(cause)
			log.FromContext(ctx).Error(errors.New("panic: "+said), "a defect of the agent; please report it",
				"about", about, "stack", string(debug.Stack()))
			err = &PanicError{Cause: said}
		}
	}()
	run()
	return nil
}

// describePanic is the value of a panic as text, or its type where printing it panics, too.
func describePanic(cause any) (said string) {
	defer func() {
		if recover() != nil {
			said = fmt.Sprintf("a %T", cause)
		}
	}()
	return fmt.Sprint(cause)
}
