package configure

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
)

// awaited is how long an add-on waits for its manifests before Progressing says who should make them.
const awaited = 5 * time.Minute

// programAt returns when Progressing is to say that the program of an add-on made no manifests; zero where nothing
// waits for a program: a template makes them, or the add-on is not configured yet.
func (f facts) programAt(decided configuration) time.Time {
	conditions := f.addOn.Status.Conditions
	byTemplate := slices.ContainsFunc(decided.target.Desired, func(d addonconfig.DesiredConfig) bool {
		return d.ConfigGroupResource == confighash.Template()
	})
	waits := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	made := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnManifestApplied)
	if byTemplate || decided.held != "" || waits == nil || made != nil ||
		waits.Reason != reasonWaitingForManifestApplied || !f.addOn.DeletionTimestamp.IsZero() {
		return time.Time{}
	}
	return waits.LastTransitionTime.Add(awaited)
}

// program returns what to look for where an add-on waits for a program for long; empty where it does not. Nothing that
// the hub manager sees names the program, but it tells whether one was there.
func (f facts) program(decided configuration, now time.Time) string {
	at := f.programAt(decided)
	if at.IsZero() || now.Before(at) {
		return ""
	}
	registered := addonv1beta1.ManagedClusterAddOnRegistrationApplied
	if meta.FindStatusCondition(f.addOn.Status.Conditions, registered) != nil {
		return "; a program set up the registration of the add-on and has made no manifests: see in its log what it waits for"
	}
	return fmt.Sprintf("; it has no AddOnTemplate, so a program of its own makes them, and none has answered: see that "+
		"its Deployment runs on the hub, and in its log that it watches ManagedClusterAddOns %s; or name an AddOnTemplate "+
		"in ClusterManagementAddOn %s", f.addOn.Name, f.addOn.Name)
}
