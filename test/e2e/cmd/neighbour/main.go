// Command neighbour is the programs of the add-ons of suite neighbours, which have the shapes of add-ons that people
// run. Its first argument is what it does:
//
//   - relay-hub, relay-agent: an add-on with certificates of two signers and a webhook on the hub.
//   - crew-manager, crew-agent, crew-goodbye: an add-on with a hub manager that speaks OCM's wire by itself.
//   - courier-agent: an add-on that creates and deletes objects on the hub without a pause.
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

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		slog.Error("the program ends", "error", err)
		os.Exit(1)
	}
}

// pause is how long the programs wait before they look again.
const pause = time.Second

// options are the flags. Each command uses some of them.
type options struct {
	// cluster is the name of the managed cluster, its namespace on the hub.
	cluster string
	// kubeconfig is the kubeconfig of the hub; empty means the account of the pod.
	kubeconfig string
	// certificate is a folder with a certificate, authority a file with the certificate of an authority.
	certificate, authority string
	// server is the address of the hub part of an add-on, image the image of an agent.
	server, image string
}

// command runs what the first argument says.
func command(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, options) error{
		"relay-hub": relayHub, "relay-agent": relayAgent, "crew-manager": crewManager, "crew-agent": crewAgent,
		"crew-goodbye": crewGoodbye, "courier-agent": courierAgent,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("the first argument must be what to do")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", "", "name of the managed cluster")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; empty means the account of the pod")
	flags.StringVar(&o.certificate, "certificate", "", "folder with a certificate")
	flags.StringVar(&o.authority, "authority", "", "file with the certificate of an authority")
	flags.StringVar(&o.server, "server", "", "address of the hub part of the add-on")
	flags.StringVar(&o.image, "image", "", "image of the agent")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return commands[args[0]](ctx, o)
}

// hub returns the configuration of clients of the hub.
func (o options) hub() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the hub: %w", err)
	}
	config.Timeout = 10 * time.Second
	return config, nil
}

// client returns a client of the hub.
func (o options) client() (kubernetes.Interface, error) {
	config, err := o.hub()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// forever calls step again and again until ctx ends, and logs what failed.
func forever(ctx context.Context, step func(context.Context) error) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := step(ctx); err != nil {
			slog.Warn("trying again", "error", err)
		}
	}, pause)
	return nil
}
