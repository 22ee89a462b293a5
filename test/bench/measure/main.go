package measure

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Main is for the main function of a benchmark: it runs it until it ends or is interrupted, prints its error, and
// returns the status to exit with.
func Main(run func(ctx context.Context) error) int {
	logf.SetLogger(logr.Discard()) // The benchmark says itself what it does.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
