// Command spokelet is the agent of Spokelet: it joins a managed cluster to its hub and serves its add-ons and works.
// See package agent.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	config, err := agent.ParseFlags(os.Args[0], os.Args[1:], os.Stdout)
	if err == nil {
		err = agent.Run(ctx, config)
	}
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "spokelet:", err)
		os.Exit(1)
	}
}
