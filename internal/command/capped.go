package command

import "github.com/go-logr/logr"

// maxVerbosity is the highest verbosity at which anything is logged. client-go logs a body that it cannot decode at 5,
// headers at 7, and the bodies of all requests and answers from 8 on: those of Secrets, of tokens and of kubeconfigs
// are among them. It does so with the logger of the context, so the limit holds for every logger and not only for that
// of client-go.
const maxVerbosity = 4

// capped returns a logger that drops the entries beyond maxVerbosity.
func capped(logger logr.Logger) logr.Logger {
	sink := logger.GetSink()
	if deeper, ok := sink.(logr.CallDepthLogSink); ok {
		sink = deeper.WithCallDepth(1) // the frame of cappedSink
	}
	return logger.WithSink(cappedSink{sink})
}

// cappedSink drops the entries beyond maxVerbosity.
type cappedSink struct{ sink logr.LogSink }

var _ logr.CallDepthLogSink = cappedSink{}

// Init implements logr.LogSink. The sink inside is initialized already.
func (cappedSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (c cappedSink) Enabled(level int) bool { return level <= maxVerbosity && c.sink.Enabled(level) }

// Info implements logr.LogSink.
func (c cappedSink) Info(level int, msg string, keysAndValues ...any) {
	if level <= maxVerbosity {
		c.sink.Info(level, msg, keysAndValues...)
	}
}

// Error implements logr.LogSink.
func (c cappedSink) Error(err error, msg string, keysAndValues ...any) {
	c.sink.Error(err, msg, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (c cappedSink) WithValues(keysAndValues ...any) logr.LogSink {
	return cappedSink{c.sink.WithValues(keysAndValues...)}
}

// WithName implements logr.LogSink.
func (c cappedSink) WithName(name string) logr.LogSink { return cappedSink{c.sink.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (c cappedSink) WithCallDepth(depth int) logr.LogSink {
	if deeper, ok := c.sink.(logr.CallDepthLogSink); ok {
		return cappedSink{deeper.WithCallDepth(depth)}
	}
	return c
}
