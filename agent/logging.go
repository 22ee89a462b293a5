package agent

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// newLogger returns a logger that writes one line of key=value pairs per entry, up to a verbosity.
func newLogger(out io.Writer, verbosity int) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
}

// useLogger makes the libraries that keep a logger of their own use this one.
func useLogger(logger logr.Logger) {
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
}
