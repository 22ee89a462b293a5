// Command spokelet-hub is the hub manager of Spokelet: it lets clusters in, and installs, configures and deploys their
// add-ons. See package hub.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spokelet/spokelet/hub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := hub.Main(ctx)
	stop()
	os.Exit(status)
}
