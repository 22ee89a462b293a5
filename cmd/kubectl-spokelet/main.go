// Command kubectl-spokelet is the plugin "kubectl spokelet": it says what is wrong with a fleet, where, and what to do.
// See package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/cli"
)

func main() {
	plugin := cli.New()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := plugin.Run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
