package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Runner runs tests and returns the status to exit with; *testing.M does.
type Runner interface{ Run() int }

// Main is for the TestMain of a package: it calls start, runs the tests and calls the stop function that start
// returned, also when a test panics and when the binary is interrupted. It returns the status to exit with.
func Main(m Runner, start func(ctx context.Context) (stop func(), err error)) (code int) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stop, err := start(ctx)
	if stop != nil {
		defer stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "preparing the tests: %v\n", err)
		return 1
	}
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
}
