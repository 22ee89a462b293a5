// Command spokelet-hub is the hub manager of Spokelet: it lets clusters in, and installs, configures and deploys their
// add-ons. See package hub.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/hub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := hub.Main(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "spokelet-hub:", err)
		os.Exit(1)
	}
}
