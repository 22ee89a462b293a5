package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	windowName = "soon"
	// windowedVersion comes in a window, approvedVersion with an approval, and undoneVersion goes back.
	windowedVersion, approvedVersion, undoneVersion = "v3", "v4", "v5"
	// soonest is how far off the window is at least, so that the wait is seen.
	soonest = 8 * time.Second
)

// policySteps are the steps about windows, approvals and undo.
func (d *demo) policySteps() []step {
	return []step{
		{title: "Upgrading web to v3, which waits for its window", do: d.closeWindow,
			after: d.ask("get windows", "rollout status addon web"),
			why:   "A MaintenanceWindow says when clusters may begin to change. The condition has the instant."},
		{title: "The window opens at the full minute", do: d.openWindow, takes: time.Minute + soonest + stepTimeout,
			why: "Nobody acts: the hub manager wakes when a window begins or ends, and sends nothing in between."},
		{title: "Upgrading web to v4, which waits for an approval", do: d.awaitApproval,
			after: d.ask("rollout approve addon web"),
			why:   "An approval names a content by its hash, and never covers another one."},
		{title: "Approved: the upgrade to v4 goes on", do: d.approved},
		{title: "Upgrading web to v5, which cluster2 cannot pull", do: d.undo, after: d.ask("rollout status addon web"),
			why: "The policy says Undo: cluster2 returned to v4 by itself. Cluster1 keeps v5, and cluster3 never gets it."},
	}
}

// putPolicy creates the policy of web, or changes it.
func (d *demo) putPolicy(ctx context.Context, spec string) error {
	return d.fleet.Hub.Apply(ctx, fmt.Appendf(nil,
		"{apiVersion: %s, kind: AddOnPolicy, metadata: {name: %s}, spec: %s}", policies.GroupVersion(), webName, spec))
}

// closeWindow lets web change in a window that opens at a full minute, and brings a version to the hub before.
func (d *demo) closeWindow(ctx context.Context, note func(string)) error {
	opens := d.console.clock.Now().UTC().Add(soonest).Truncate(time.Minute).Add(time.Minute)
	err := d.fleet.Hub.Apply(ctx, fmt.Appendf(nil, `{apiVersion: %s, kind: MaintenanceWindow, metadata: {name: %s},
		spec: {kind: Allow, schedule: "%d %d * * *", duration: 1h, addOns: [%s]}}`,
		policies.GroupVersion(), windowName, opens.Minute(), opens.Hour(), webName))
	if err != nil {
		return err
	}
	if err := d.applyWeb(ctx, windowedVersion); err != nil {
		return err
	}
	return d.everyWaits(ctx, "it may begin at "+opens.Format(time.RFC3339), note)
}

// everyWaits waits until web says on every cluster that it waits, in some words.
func (d *demo) everyWaits(ctx context.Context, words string, note func(string)) error {
	return fleet.Wait(ctx, "web to wait on every cluster", note, func(ctx context.Context) error {
		for _, cluster := range d.fleet.Clusters() {
			addOn, err := d.addOn(ctx, cluster.Name, webName)
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(addOn.Status.Conditions, "Configured")
			if c == nil || !strings.Contains(c.Message, words) {
				return fleet.NotYet("%s does not say yet: %s", cluster.Name, words)
			}
		}
		return nil
	})
}

func (d *demo) openWindow(ctx context.Context, note func(string)) error {
	if err := d.waitWeb(ctx, windowedVersion, note); err != nil {
		return err
	}
	window := &policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: windowName}}
	if err := d.fleet.HubClient.Delete(ctx, window); err != nil {
		return fmt.Errorf("deleting the MaintenanceWindow: %w", err)
	}
	return nil
}

func (d *demo) awaitApproval(ctx context.Context, note func(string)) error {
	if err := d.putPolicy(ctx, "{approval: PerRollout}"); err != nil {
		return err
	}
	if err := d.applyWeb(ctx, approvedVersion); err != nil {
		return err
	}
	return d.everyWaits(ctx, "AddOnPolicy web does not approve content", note)
}

func (d *demo) approved(ctx context.Context, note func(string)) error {
	return d.waitWeb(ctx, approvedVersion, note)
}

// undo lets a version fail on a cluster, and waits until that has the last one again.
func (d *demo) undo(ctx context.Context, note func(string)) error {
	if err := d.putPolicy(ctx, "{approval: None, onFailure: {action: Undo}}"); err != nil {
		return err
	}
	d.pods.withhold(image + ":" + undoneVersion)
	web := bytes.Replace(d.web(undoneVersion), []byte("minSuccessTime: 5s"),
		[]byte("minSuccessTime: 5s\n          progressDeadline: 10s"), 1)
	if err := d.fleet.Hub.Apply(ctx, web); err != nil {
		return err
	}
	return fleet.Wait(ctx, failing+" to return to "+approvedVersion, note, func(ctx context.Context) error {
		addOn, err := d.addOn(ctx, failing, webName)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, "addon.spokelet.io/RolloutFailed")
		if c == nil || c.Reason != "Undone" {
			return fleet.NotYet("%s has not returned yet", failing)
		}
		return errors.Join(
			d.hasWeb(ctx, d.fleet.Clusters()[0], undoneVersion),
			d.hasWeb(ctx, d.fleet.Cluster(failing), approvedVersion),
			d.hasWeb(ctx, d.fleet.Cluster(notYetMoved), approvedVersion),
		)
	})
}

// forgetPolicy deletes the policy of web, and lets cluster2 pull all images.
func (d *demo) forgetPolicy(ctx context.Context) error {
	d.pods.withhold("")
	policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: webName}}
	if err := d.fleet.HubClient.Delete(ctx, policy); err != nil {
		return fmt.Errorf("deleting the AddOnPolicy: %w", err)
	}
	return nil
}
