// Command workload is the program in the pods of add-ons that do nothing of their own. Its argument is what it does:
// run until it is told to end, fail, or work for a while and succeed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "run":
		<-ctx.Done()
		return nil
	case len(args) == 2 && args[0] == "fail":
		return errors.New(args[1])
	case len(args) == 2 && args[0] == "work":
		length, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		select {
		case <-time.After(length):
			return nil
		case <-ctx.Done():
			return errors.New("ended before the work was done")
		}
	}
	return errors.New("usage: workload run | fail MESSAGE | work DURATION")
}
