// Command spokelet is the agent of Spokelet: it joins a managed cluster to its hub and serves its add-ons and works.
// See package agent.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spokelet/spokelet/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := agent.Main(ctx)
	stop()
	os.Exit(status)
}
