// Command e2e plays the end-to-end suites on kind clusters and reports each scenario with its time. It must run in the
// folder of its module; "make e2e" does that.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctrllog.SetLogger(logr.Discard()) // The suites say themselves what happens.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the clusters are deleted; a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	if errors.Is(err, errHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}
