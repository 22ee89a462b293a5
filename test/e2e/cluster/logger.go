package cluster

import (
	"fmt"
	"io"

	"sigs.k8s.io/kind/pkg/log"
)

// logger writes what kind reports as lines.
type logger struct{ out io.Writer }

var _ log.Logger = logger{}

// Warn implements log.Logger.
func (l logger) Warn(message string) { fmt.Fprintln(l.out, "warning:", message) }

// Warnf implements log.Logger.
func (l logger) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error implements log.Logger.
func (l logger) Error(message string) { fmt.Fprintln(l.out, "error:", message) }

// Errorf implements log.Logger.
func (l logger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

// V implements log.Logger.
func (l logger) V(level log.Level) log.InfoLogger { return info{logger: l, enabled: level <= 1} }

// info is the logger of one level.
type info struct {
	logger

	enabled bool
}

// Info implements log.InfoLogger.
func (i info) Info(message string) {
	if i.enabled {
		fmt.Fprintln(i.out, message)
	}
}

// Infof implements log.InfoLogger.
func (i info) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }

// Enabled implements log.InfoLogger.
func (i info) Enabled() bool { return i.enabled }
