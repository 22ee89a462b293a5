// Command agent is the agent of add-on uptime on a managed cluster. It asks the API server of the cluster for its
// version again and again, and records in ConfigMap uptime since when it answers, and how often it did not. As long as
// it can record that, it renews the Lease of the add-on, by which the hub knows that the add-on is available.
//
// It knows nothing of the hub, and imports nothing of the hub's side.
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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spokelet/spokelet/lease"
)

// addOn is the name of the add-on, of its Lease and of its ConfigMap; account is its ServiceAccount.
const addOn, account = "uptime", "uptime-agent"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error("the agent ends", "error", err)
		os.Exit(1)
	}
}

// run reads the flags and runs the agent until ctx ends.
func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the managed cluster; empty means that of the pod")
	namespace := flags.String("namespace", "open-cluster-management-agent-addon", "namespace of the agent")
	interval := flags.Duration("interval", 20*time.Second, "time between two checks")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *interval <= 0 {
		return fmt.Errorf("--interval must be positive, and is %s", *interval)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	m := &monitor{client: client, namespace: *namespace}
	if err := m.start(ctx, time.Now()); err != nil {
		return err
	}
	renewer := &lease.Renewer{
		Leases: client.CoordinationV1().Leases(*namespace), Namespace: *namespace, Name: addOn, Create: true,
		Owners: m.owners, Healthy: []func(context.Context) error{m.healthy},
		Report: func(_ time.Time, err error) {
			if err != nil {
				slog.Error("the lease is not renewed", "error", err)
			}
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- renewer.Run(ctx) }()
	ticker := time.NewTicker(*interval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case now := <-ticker.C:
			if err := m.check(ctx, now); err != nil {
				slog.Error("nothing recorded", "error", err)
			}
		}
	}
}
