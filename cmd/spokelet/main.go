// Command spokelet is the agent of Spokelet: it joins a managed cluster to its hub and serves its add-ons and works.
// See package agent.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := agent.Main(ctx, os.Args[0], os.Args[1:], os.Stdout)
	stop()
	os.Exit(command.ExitStatus("spokelet", err, os.Stderr))
}
