package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	webName      = "web"
	hookName     = "web-goodbye"
	gatewayName  = "gateway"
	gatewayOn    = "cluster1"
	gatewayOf    = "cluster3"
	failing      = "cluster2"
	notYetMoved  = "cluster3"
	oldVersion   = "v1"
	newVersion   = "v2"
	gatewayAgent = "gateway-of-" + gatewayOf
)

//go:embed addons/web-template.yaml
var webTemplate []byte

//go:embed addons/web.yaml
var webAddOn []byte

//go:embed addons/gateway.yaml
var gatewayAddOn []byte

// hubSteps are the steps about rollouts, hosted add-ons, hooks, and what to ask when something is wrong.
func (d *demo) hubSteps() []step {
	steps := []step{
		{title: "Enabling the add-on web, version v1", do: d.enableWeb, after: d.askDiff,
			why: "An AddOnTemplate is all that it needs. Clusters come one at a time, when the last was well for 5 seconds. " +
				"What an upgrade to v2 would do can be asked before:"},
		{title: "Upgrading web to v2, which cluster2 cannot pull", do: d.stopUpgrade,
			after: d.ask("rollout status addon web"),
			why:   "Clusters move one at a time; the first that is not well stops the rollout, and cluster3 keeps v1."},
		{title: "Making the image available: the upgrade goes on", do: d.resumeUpgrade,
			after: d.ask("rollout status addon web"),
			why:   "Nobody restarts a rollout: it goes on when the cluster is well."},
	}
	return slices.Concat(steps, d.policySteps(), []step{
		{title: "Enabling gateway for cluster3, hosted on cluster1", do: d.enableGateway,
			after: d.ask("tree addon gateway --all"),
			why:   "The agent of a hosted add-on runs on another cluster, and its state has the conditions of both."},
		{title: "Deleting all add-ons: the hook of web runs first", do: d.deleteAddons, after: d.ask("tree addon web"),
			why: "A pre-delete hook is a Job of the add-on; until it is complete, what it may need stays."},
		{title: "Completing the hooks, until nothing is left", do: d.finishHooks, after: d.showMemory,
			why: "Objects, credentials, permissions and works go with an add-on, on the hub and on every cluster."},
		{title: "Enabling all again, and cluster2 cannot pull web", do: d.enableBroken,
			after: d.ask("tree", "why addon web -n "+failing),
			why:   "Problems come first, what is well is counted; and why follows one of them to its first cause."},
	})
}

// applyWeb brings a version of web to the hub: its template, and the add-on that names it.
func (d *demo) applyWeb(ctx context.Context, version string) error {
	return d.fleet.Hub.Apply(ctx, d.web(version))
}

// web returns a version of web: its template, and the add-on that names it.
func (d *demo) web(version string) []byte {
	docs := bytes.Join([][]byte{webTemplate, webAddOn}, []byte("\n---\n"))
	return bytes.ReplaceAll(docs, []byte("VERSION"), []byte(version))
}

func (d *demo) enableWeb(ctx context.Context, note func(string)) error {
	if err := d.applyWeb(ctx, oldVersion); err != nil {
		return err
	}
	return d.waitWeb(ctx, oldVersion, note)
}

// waitWeb waits until every cluster has a version of web and is well with it.
func (d *demo) waitWeb(ctx context.Context, version string, note func(string)) error {
	return fleet.Wait(ctx, "web "+version+" on every cluster", note, func(ctx context.Context) error {
		for _, cluster := range d.fleet.Clusters() {
			if err := d.hasWeb(ctx, cluster, version); err != nil {
				return err
			}
		}
		message, err := d.rolloutMessage(ctx)
		if err == nil && !strings.Contains(message, "3/3 completed with no errors, 0 failed 0 timeout") {
			return fleet.NotYet("%s", message)
		}
		return err
	})
}

// hasWeb returns why a cluster does not have a version of web or is not well with it; nil when it is.
func (d *demo) hasWeb(ctx context.Context, cluster *fleet.Cluster, version string) error {
	addOn, err := d.addOn(ctx, cluster.Name, webName)
	if err != nil {
		return err
	}
	if reason := notWell(addOn); reason != "" {
		return fleet.NotYet("%s: %s", cluster.Name, reason)
	}
	var deployment appsv1.Deployment
	if err := cluster.Client.Get(ctx, agentKey(webName), &deployment); err != nil {
		return err
	}
	if have := deployment.Spec.Template.Spec.Containers[0].Image; have != image+":"+version {
		return fleet.NotYet("%s has %s", cluster.Name, have)
	}
	return nil
}

func (d *demo) stopUpgrade(ctx context.Context, note func(string)) error {
	d.pods.withhold(image + ":" + newVersion)
	if err := d.applyWeb(ctx, newVersion); err != nil {
		return err
	}
	err := fleet.Wait(ctx, "the rollout to be stopped by "+failing, note, func(ctx context.Context) error {
		if err := d.hasWeb(ctx, d.fleet.Clusters()[0], newVersion); err != nil {
			return err
		}
		return d.isStuck(ctx, newVersion)
	})
	if err != nil {
		return err
	}
	return d.hasWeb(ctx, d.fleet.Cluster(notYetMoved), oldVersion)
}

// isStuck returns why the rollout of a version of web is not stopped yet by the cluster that cannot pull it.
func (d *demo) isStuck(ctx context.Context, version string) error {
	addOn, err := d.addOn(ctx, failing, webName)
	if err != nil {
		return err
	}
	available := meta.FindStatusCondition(addOn.Status.Conditions, "Available")
	if available == nil || available.Status != metav1.ConditionFalse ||
		!strings.Contains(available.Message, image+":"+version) {
		return fleet.NotYet("%s does not report yet that it cannot pull the image", failing)
	}
	message, err := d.rolloutMessage(ctx)
	if err == nil && !strings.Contains(message, "1 cluster is stuck, the first is "+failing) {
		return fleet.NotYet("%s", message)
	}
	return err
}

func (d *demo) resumeUpgrade(ctx context.Context, note func(string)) error {
	d.pods.withhold("")
	return d.waitWeb(ctx, newVersion, note)
}

func (d *demo) enableGateway(ctx context.Context, note func(string)) error {
	if err := d.fleet.Hub.Apply(ctx, gatewayAddOn); err != nil {
		return err
	}
	err := fleet.Wait(ctx, "gateway on "+gatewayOn, note, func(ctx context.Context) error {
		addOn, err := d.addOn(ctx, gatewayOf, gatewayName)
		if err != nil {
			return err
		}
		if reason := notWell(addOn); reason != "" {
			return fleet.NotYet("%s", reason)
		}
		return d.fleet.Cluster(gatewayOn).Client.Get(ctx, agentKey(gatewayAgent), &appsv1.Deployment{})
	})
	if err != nil {
		return err
	}
	return isGone(ctx, d.fleet.Cluster(gatewayOf).Client, &appsv1.Deployment{}, names.NamespaceAgentAddon, gatewayAgent)
}

// askDiff asks what version v2 of web would do.
func (d *demo) askDiff(ctx context.Context) error {
	path := filepath.Join(d.fleet.Dir(), "web-"+newVersion+".yaml")
	if err := os.WriteFile(path, d.web(newVersion), 0o600); err != nil {
		return fmt.Errorf("writing %s of web: %w", newVersion, err)
	}
	return d.ask("diff addon web -f " + path)(ctx)
}

// enableBroken enables all add-ons again, where a cluster cannot pull one of them.
func (d *demo) enableBroken(ctx context.Context, note func(string)) error {
	d.pods.withhold(image + ":" + oldVersion)
	if err := d.applyWeb(ctx, oldVersion); err != nil {
		return err
	}
	for _, do := range []func(context.Context, func(string)) error{
		d.enableAddon, d.startAddonAgents, d.waitHealthy, d.enableGateway,
	} {
		if err := do(ctx, note); err != nil {
			return err
		}
	}
	return fleet.Wait(ctx, "the rollout to be stopped by "+failing, note, func(ctx context.Context) error {
		return d.isStuck(ctx, oldVersion)
	})
}

// deleteAddons deletes the definition of each add-on, and waits until the hooks of web run.
func (d *demo) deleteAddons(ctx context.Context, note func(string)) error {
	d.pods.hold(true)
	if err := d.forgetPolicy(ctx); err != nil {
		return err
	}
	for _, name := range []string{addonName, webName, gatewayName} {
		cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := d.fleet.HubClient.Delete(ctx, cma); err != nil {
			return fmt.Errorf("deleting the ClusterManagementAddOn: %w", err)
		}
	}
	return d.each(ctx, func(ctx context.Context, cluster *fleet.Cluster) error {
		err := fleet.Wait(ctx, "the hook of web on "+cluster.Name, note, func(ctx context.Context) error {
			addOn, err := d.addOn(ctx, cluster.Name, webName)
			if err != nil {
				return err
			}
			if c := meta.FindStatusCondition(addOn.Status.Conditions, "addon.spokelet.io/Deleting"); c == nil {
				return fleet.NotYet("%s: the add-on is not being deleted yet", cluster.Name)
			}
			return cluster.Client.Get(ctx, agentKey(hookName), &batchv1.Job{})
		})
		if err != nil {
			return err
		}
		if err := cluster.Client.Get(ctx, agentKey(webName), &appsv1.Deployment{}); err != nil {
			return fmt.Errorf("the Deployment of web must stay while the hook runs: %w", err)
		}
		return nil
	})
}

func (d *demo) finishHooks(ctx context.Context, note func(string)) error {
	d.pods.hold(false)
	return d.waitGone(ctx, note)
}

func (d *demo) addOn(ctx context.Context, cluster, name string) (*addonv1beta1.ManagedClusterAddOn, error) {
	var addOn addonv1beta1.ManagedClusterAddOn
	err := d.fleet.HubClient.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &addOn)
	return &addOn, err
}

// rolloutMessage returns what the hub manager says about the rollout of web.
func (d *demo) rolloutMessage(ctx context.Context) (string, error) {
	var cma addonv1beta1.ClusterManagementAddOn
	if err := d.fleet.HubClient.Get(ctx, client.ObjectKey{Name: webName}, &cma); err != nil {
		return "", err
	}
	for _, progression := range cma.Status.InstallProgressions {
		if c := meta.FindStatusCondition(progression.Conditions, "Progressing"); c != nil {
			return c.Message, nil
		}
	}
	return "the rollout has no condition yet", nil
}

// notWell returns why an add-on is not available or not rolled out; empty when it is both.
func notWell(addOn *addonv1beta1.ManagedClusterAddOn) string {
	available := meta.FindStatusCondition(addOn.Status.Conditions, "Available")
	progressing := meta.FindStatusCondition(addOn.Status.Conditions, "Progressing")
	switch {
	case available == nil:
		return "nobody has said yet whether the add-on is available"
	case available.Status != metav1.ConditionTrue:
		return available.Reason + ": " + available.Message
	case progressing == nil:
		return "nobody has said yet whether the add-on is rolled out"
	case progressing.Reason != addonv1beta1.ProgressingReasonCompleted:
		return progressing.Reason + ": " + progressing.Message
	}
	return ""
}

// agentKey is the key of an object beside the agents of add-ons.
func agentKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: name}
}
