// Command agent is the agent of add-on weather. It runs on a managed cluster, or for one on a hosting cluster, and
// reports to the hub: ConfigMap weather in the namespace of the cluster has the forecast that the agent read on the
// hub, what it saw on its cluster, and a signature with which everybody can verify which station the report is from.
//
// "agent goodbye" closes the report; the pre-delete hook of the add-on runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error("the agent ends", "error", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	cluster, hubKubeconfig, kubeconfig, certificate, listen string
	interval                                                time.Duration
}

// command runs the agent, or its subcommand.
func command(ctx context.Context, arguments []string) error {
	leaves := len(arguments) > 0 && arguments[0] == "goodbye"
	if leaves {
		arguments = arguments[1:]
	}
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	if leaves {
		hub, err := clientOf(o.hubKubeconfig)
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of the hub: %w", err)
		}
		return goodbye(ctx, hub, o.cluster)
	}
	return run(ctx, o)
}

// parse reads the flags.
func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", "", "name of the managed cluster, its namespace on the hub")
	flags.StringVar(&o.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the managed cluster; empty means that of the pod")
	flags.StringVar(&o.certificate, "certificate", "", "folder with tls.crt and tls.key of the station")
	flags.StringVar(&o.listen, "listen", ":8080", "address of /readyz")
	flags.DurationVar(&o.interval, "interval", 30*time.Second, "time between two reports")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	switch {
	case o.cluster == "" || o.hubKubeconfig == "":
		return o, errors.New("--cluster and --hub-kubeconfig are required")
	case o.interval <= 0:
		return o, fmt.Errorf("--interval must be positive, and is %s", o.interval)
	}
	return o, nil
}
