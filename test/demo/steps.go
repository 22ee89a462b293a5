package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// addonGrace is how long the agent of the add-on gets to end by itself.
const addonGrace = 5 * time.Second

const (
	addonName    = "hello"
	agentName    = "hello-agent"
	copyLabel    = "hello.spokelet.io/copy"
	greetingName = "greeting"
)

// step is one numbered part of the demo.
type step struct {
	title string
	// why is a sentence about what is shown and why it matters; it stands below the step.
	why string
	// takes is how long it may take; zero means stepTimeout.
	takes time.Duration
	do    func(ctx context.Context, note func(string)) error
	after func(ctx context.Context) error
}

func (d *demo) steps() []step {
	return append([]step{
		{title: "Starting control planes: hub, cluster1, cluster2, cluster3", do: d.startControlPlanes},
		{title: "Installing the hub manager and the CRDs", do: d.installHub},
		{title: "Starting an agent for each cluster", do: d.startAgents},
		{title: "Accepting the clusters", do: d.acceptClusters},
		{title: "Enabling the hello add-on by a Placement", do: d.enableAddon},
		{title: "Starting the add-on's agent as a kubelet would", do: d.startAddonAgents},
		{title: "Waiting until the add-on is available", do: d.waitHealthy,
			after: d.ask("tree cluster cluster1 --all"),
			why:   "Hub manager and agent tell what they know in conditions. Our plugin for kubectl reads them."},
		{title: "Bringing a changed ConfigMap to every cluster", do: d.changeConfigMap,
			why: "An add-on's agent reaches the hub with a credential of its own."},
		{title: "Repairing a deleted Deployment on every cluster", do: d.deleteApplied,
			why: "Agents watch what they applied, so a repair takes no resync."},
	}, d.hubSteps()...)
}

func (d *demo) startControlPlanes(ctx context.Context, _ func(string)) (err error) {
	d.fleet, err = fleet.New(ctx, fleet.Options{Clusters: []string{"cluster1", "cluster2", "cluster3"}})
	if err == nil {
		d.pods.play(context.WithoutCancel(ctx), d.fleet.Clusters())
	}
	return err
}

func (d *demo) installHub(ctx context.Context, note func(string)) error {
	return d.fleet.InstallHub(ctx, note)
}

func (d *demo) startAgents(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		if err := d.fleet.StartAgent(ctx, cluster); err != nil {
			return err
		}
		return fleet.Wait(ctx, "ManagedCluster "+cluster.Name, note, func(ctx context.Context) error {
			if err := cluster.Agent.Exited(); err != nil {
				return err
			}
			return d.fleet.HubClient.Get(ctx, client.ObjectKey{Name: cluster.Name}, &clusterv1.ManagedCluster{})
		})
	})
}

func (d *demo) acceptClusters(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		if err := d.fleet.Accept(ctx, cluster.Name, map[string]string{"environment": "demo"}); err != nil {
			return err
		}
		return d.fleet.WaitAvailable(ctx, cluster, note)
	})
}

func (d *demo) enableAddon(ctx context.Context, note func(string)) error {
	if err := d.fleet.ApplySample(ctx, addonName); err != nil {
		return err
	}
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		return fleet.Wait(ctx, "the credential of the add-on on "+cluster.Name, note, func(ctx context.Context) error {
			if reason := d.addonReason(ctx, cluster.Name); reason != "" {
				note(reason)
			}
			key := types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: addonName + "-hub-kubeconfig"}
			return cluster.Client.Get(ctx, key, &corev1.Secret{})
		})
	})
}

func (d *demo) startAddonAgents(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		return fleet.Wait(ctx, "the Deployment of the add-on on "+cluster.Name, note, func(ctx context.Context) error {
			deployment := types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: agentName}
			process, err := d.fleet.RunDeployment(ctx, cluster, deployment, agentName, "kubeconfig")
			if err == nil {
				d.mu.Lock()
				d.addons[cluster.Name] = process
				d.mu.Unlock()
			}
			return err
		})
	})
}

func (d *demo) waitHealthy(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		return fleet.Wait(ctx, "add-on hello on "+cluster.Name, note, func(ctx context.Context) error {
			for _, process := range d.addonProcesses() {
				if err := process.Exited(); err != nil {
					return err
				}
			}
			if reason := d.addonReason(ctx, cluster.Name); reason != "" {
				return fleet.NotYet("%s", reason)
			}
			return nil
		})
	})
}

// addonReason returns why the add-on hello of a cluster is not healthy yet; empty when it is.
func (d *demo) addonReason(ctx context.Context, cluster string) string {
	addOn, err := d.addOn(ctx, cluster, addonName)
	if err != nil {
		return err.Error()
	}
	if reason := notWell(addOn); reason != "" {
		return cluster + ": " + reason
	}
	return ""
}

func (d *demo) changeConfigMap(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		greeting := "hello " + cluster.Name + ", it is " + d.console.clock.Now().UTC().Format(time.RFC3339Nano)
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: greetingName, Namespace: cluster.Name, Labels: map[string]string{copyLabel: "true"},
			},
			Data: map[string]string{"text": greeting},
		}
		if err := d.fleet.HubClient.Create(ctx, object); err != nil {
			return fmt.Errorf("creating the ConfigMap on the hub: %w", err)
		}
		if err := d.waitGreeting(ctx, cluster, greeting, note); err != nil {
			return err
		}
		object.Data["text"] = greeting + ", and again"
		if err := d.fleet.HubClient.Update(ctx, object); err != nil {
			return fmt.Errorf("changing the ConfigMap on the hub: %w", err)
		}
		return d.waitGreeting(ctx, cluster, object.Data["text"], note)
	})
}

func (d *demo) waitGreeting(ctx context.Context, cluster *fleet.Cluster, want string, note func(string)) error {
	return fleet.Wait(ctx, "the ConfigMap on "+cluster.Name, note, func(ctx context.Context) error {
		var copied corev1.ConfigMap
		key := types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: greetingName}
		if err := cluster.Client.Get(ctx, key, &copied); err != nil {
			return err
		}
		if copied.Data["text"] != want {
			return fleet.NotYet("the spoke has %q", copied.Data["text"])
		}
		return nil
	})
}

func (d *demo) deleteApplied(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		key := types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: agentName}
		var before appsv1.Deployment
		if err := cluster.Client.Get(ctx, key, &before); err != nil {
			return fmt.Errorf("reading the Deployment: %w", err)
		}
		if err := cluster.Client.Delete(ctx, &before); err != nil {
			return fmt.Errorf("deleting the Deployment: %w", err)
		}
		return fleet.Wait(ctx, "the Deployment on "+cluster.Name, note, func(ctx context.Context) error {
			var after appsv1.Deployment
			if err := cluster.Client.Get(ctx, key, &after); err != nil {
				return err
			}
			if after.UID == before.UID {
				return fleet.NotYet("the old one is still there")
			}
			return nil
		})
	})
}

// waitGone waits until the hello add-on, and all works of all add-ons, are gone from every cluster.
func (d *demo) waitGone(ctx context.Context, note func(string)) error {
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		err := fleet.Wait(ctx, "the Deployment to be gone from "+cluster.Name, note, func(ctx context.Context) error {
			return isGone(ctx, cluster.Client, &appsv1.Deployment{}, names.NamespaceAgentAddon, agentName)
		})
		if err != nil {
			return err
		}
		d.stopAddonAgent(cluster)
		return fleet.Wait(ctx, "the add-ons to be gone from "+cluster.Name, note, func(ctx context.Context) error {
			return d.leftovers(ctx, cluster)
		})
	})
}

// stopAddonAgent ends the agent of the add-on, as a kubelet does when its pod goes with the Deployment.
func (d *demo) stopAddonAgent(cluster *fleet.Cluster) {
	d.mu.Lock()
	process := d.addons[cluster.Name]
	delete(d.addons, cluster.Name)
	d.mu.Unlock()
	if process != nil {
		process.Stop(addonGrace)
	}
}

// leftovers names what is left of the add-on on the hub and on a spoke; nil when nothing is.
func (d *demo) leftovers(ctx context.Context, cluster *fleet.Cluster) error {
	var works workv1.ManifestWorkList
	if err := d.fleet.HubClient.List(ctx, &works, client.InNamespace(cluster.Name)); err != nil {
		return err
	}
	var applied workv1.AppliedManifestWorkList
	if err := cluster.Client.List(ctx, &applied); err != nil {
		return err
	}
	if len(works.Items)+len(applied.Items) > 0 {
		return fleet.NotYet("%d ManifestWorks and %d AppliedManifestWorks are left", len(works.Items), len(applied.Items))
	}
	namespace := names.NamespaceAgentAddon
	return errors.Join(
		isGone(ctx, cluster.Client, &appsv1.Deployment{}, namespace, webName),
		isGone(ctx, cluster.Client, &batchv1.Job{}, namespace, hookName),
		isGone(ctx, d.fleet.HubClient, &addonv1beta1.ManagedClusterAddOn{}, cluster.Name, addonName),
		isGone(ctx, cluster.Client, &appsv1.Deployment{}, namespace, agentName),
		isGone(ctx, cluster.Client, &corev1.ServiceAccount{}, namespace, agentName),
		isGone(ctx, cluster.Client, &corev1.Secret{}, namespace, addonName+"-hub-kubeconfig"),
		isGone(ctx, cluster.Client, &coordinationv1.Lease{}, namespace, addonName),
		isGone(ctx, cluster.Client, &corev1.ConfigMap{}, namespace, greetingName),
	)
}

// isGone returns nil when an object does not exist, and otherwise that it is left or why that is not known.
func isGone(ctx context.Context, from client.Reader, object client.Object, namespace, name string) error {
	switch err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
	case err == nil:
		kind := reflect.TypeOf(object).Elem().Name()
		return fleet.NotYet("%s %s/%s is left", kind, namespace, name)
	case !apierrors.IsNotFound(err):
		return err
	}
	return nil
}

func (d *demo) showMemory(context.Context) error {
	const budget = 48 << 20
	d.console.line("")
	for _, process := range append([]*sandbox.Process{d.fleet.HubManager()}, d.agents()...) {
		rss, err := process.RSS()
		if err != nil {
			return err
		}
		verdict := ""
		if process != d.fleet.HubManager() {
			verdict = fmt.Sprintf(" (budget %d MiB)", budget>>20)
			if rss > budget {
				verdict = fmt.Sprintf(" (OVER the budget of %d MiB)", budget>>20)
			}
		}
		d.console.line("%-20s %5.1f MiB RSS%s", process.Name, float64(rss)/(1<<20), verdict)
	}
	return nil
}

// each runs do for every cluster at the same time.
func (d *demo) each(ctx context.Context, do func(context.Context, *fleet.Cluster) error) error {
	var group errgroup.Group
	for _, cluster := range d.fleet.Clusters() {
		group.Go(func() error { return do(ctx, cluster) })
	}
	return group.Wait()
}

func (d *demo) agents() []*sandbox.Process {
	var all []*sandbox.Process
	for _, cluster := range d.fleet.Clusters() {
		all = append(all, cluster.Agent)
	}
	return all
}

func (d *demo) addonProcesses() []*sandbox.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.addons))
}
