// Command hello is the agent of the sample add-on in manifests/samples/hello: about the smallest add-on agent that does
// something. It copies the ConfigMaps with the label hello.spokelet.io/copy=true from the cluster's namespace on the
// hub to its own namespace on the managed cluster, keeps the copies as the originals are, and removes them when their
// originals go. Copies carry the label hello.spokelet.io/copied=true; a ConfigMap without it is another client's and is
// never touched. All that it makes, its lease too, belongs to its ServiceAccount, which is part of the add-on, and so
// goes when the add-on goes.
//
// It shows the three things that any add-on agent has:
//
//   - a hub credential, which the Spokelet agent keeps in a Secret that the pod mounts. The kubeconfig names
//     certificate and key as files beside it, and client-go reads them again when they change, so a rotation needs
//     nothing here.
//   - a credential for its own cluster, the ServiceAccount of its pod.
//   - a lease, renewed by package lease for as long as the copies can follow the originals. It is what the add-on's
//     condition Available on the hub comes from.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o := options{
		AddonName: "hello", AddonNamespace: names.NamespaceAgentAddon, LeaseDuration: lease.DefaultDuration,
	}
	flags := pflag.NewFlagSet("hello", pflag.ContinueOnError)
	flags.StringVar(&o.Cluster, "cluster-name", "", "name of the managed cluster, its namespace on the hub")
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", "", "path of the kubeconfig of the hub")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the managed cluster; empty means the pod's own")
	flags.StringVar(&o.AddonName, "addon-name", o.AddonName, "name of the add-on, and of its lease")
	flags.StringVar(&o.AddonNamespace, "addon-namespace", o.AddonNamespace, "namespace of the copies and of the lease")
	flags.StringVar(&o.Account, "service-account", "hello-agent", "ServiceAccount that owns the copies and the lease")
	flags.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "time between two renewals of the lease")
	flags.IntVar(&o.Verbosity, "v", 0, "highest level of log lines that are written")
	err := flags.Parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	stop()
	os.Exit(command.ExitStatus("hello", err, os.Stderr))
}

// options holds what the command line says.
type options struct {
	Cluster, HubKubeconfig, Kubeconfig, AddonName, AddonNamespace, Account string
	LeaseDuration                                                          time.Duration
	Verbosity                                                              int
}

func (o options) validate() error {
	if o.Cluster == "" {
		return errors.New("--cluster-name is needed: it says which namespace on the hub to copy from")
	}
	if o.HubKubeconfig == "" {
		return errors.New("--hub-kubeconfig is needed: it says how to reach the hub")
	}
	return nil
}
