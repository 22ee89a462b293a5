package hub

import (
	"context"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// withLogger returns a context with a logger: the one that ctx has, or a new one that writes one line of key=value
// pairs per entry to out, up to a verbosity, and that the libraries with a logger of their own use too.
func withLogger(ctx context.Context, out io.Writer, verbosity int) context.Context {
	if _, err := logr.FromContext(ctx); err == nil {
		return ctx
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
	return ctrl.LoggerInto(ctx, logger)
}
