package measure

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is for the main function of a benchmark: it runs it until it ends or is interrupted, prints its error, and
// returns the status to exit with.
func Main(run func(ctx context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
