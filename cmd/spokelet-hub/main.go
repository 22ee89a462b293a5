// Command spokelet-hub is the hub manager of Spokelet: it lets clusters in, and installs, configures and deploys their
// add-ons. See package hub.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := hub.Main(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	os.Exit(command.ExitStatus("spokelet-hub", err, os.Stderr))
}
