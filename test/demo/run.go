package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// stepTimeout ends a step that hangs, with the reason why its condition did not hold.
const stepTimeout = 90 * time.Second

// demo is one showing.
type demo struct {
	console     *console
	interactive bool
	fleet       *fleet.Fleet
	mu          sync.Mutex
	addons      map[string]*sandbox.Process
	pods        pods
}

// run shows everything and cleans up; at a terminal it waits for Ctrl-C before it does.
func (d *demo) run(ctx context.Context) (err error) {
	started := d.console.clock.Now()
	d.intro()
	defer func() {
		d.pods.end()
		if d.fleet != nil {
			err = errors.Join(err, d.fleet.Close())
		}
	}()
	if err := d.show(ctx, d.steps()); err != nil {
		return err
	}
	d.console.line("")
	d.console.line("all of it took %s", seconds(d.console.clock.Since(started)))
	if d.interactive {
		return d.stay(ctx)
	}
	return nil
}

// show goes through steps.
func (d *demo) show(ctx context.Context, steps []step) error {
	for _, step := range steps {
		takes := cmp.Or(step.takes, stepTimeout)
		stepCtx, cancel := context.WithTimeoutCause(ctx, takes, fmt.Errorf("gave up after %s", takes))
		err := d.console.step(stepCtx, step.title, step.do)
		cancel()
		if err != nil {
			return d.explain(err)
		}
		if step.why != "" {
			d.console.line("%s", step.why)
		}
		if step.after != nil {
			if err := step.after(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *demo) intro() {
	d.console.line("A hub and three managed clusters on this machine: real etcd, kube-apiserver and " +
		"kube-controller-manager with RBAC on, the hub manager, and one agent per cluster. Only scheduler and kubelet are " +
		"missing. What a kubelet would start for the hello add-on runs as a process, with the files that its pod would " +
		"mount. For the other add-ons the demo writes the status of their pods; Deployments and Jobs follow from that.")
	d.console.line("")
}

// explain adds to a failed step what the processes of the fleet said last.
func (d *demo) explain(err error) error {
	if d.fleet == nil {
		return err
	}
	parts := []error{err}
	for _, p := range d.fleet.Processes() {
		if ended := p.Exited(); ended != nil {
			parts = append(parts, ended)
		}
	}
	return errors.Join(parts...)
}

// stay keeps the fleet up until Ctrl-C and says how to look around.
func (d *demo) stay(ctx context.Context) error {
	hub, err := d.hubKubeconfig()
	if err != nil {
		return err
	}
	d.console.line("")
	d.console.line("The fleet stays up until Ctrl-C. Look around from another terminal:")
	d.console.command("export KUBECONFIG=%s", hub)
	d.console.command("export PATH=$PATH:%s", filepath.Dir(d.fleet.Program("kubectl-spokelet")))
	d.console.command("kubectl spokelet check")
	d.console.command("kubectl get managedclusteraddons -A")
	d.console.command("kubectl get manifestworks -A")
	for _, cluster := range d.fleet.Clusters() {
		path, err := d.fleet.Kubeconfig(cluster.ControlPlane, cluster.ControlPlane.Admin(), "admin-"+cluster.Name)
		if err != nil {
			return err
		}
		d.console.command("kubectl --kubeconfig %s get deployments,secrets,leases -n %s", path, names.NamespaceAgentAddon)
	}
	d.console.line("Logs are in %s", d.fleet.Dir())
	<-ctx.Done()
	return nil
}
