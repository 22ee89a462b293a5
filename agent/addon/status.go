package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// publish writes all that a pass found out in one patch.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, results []result) error {
	if f.addon == nil {
		return nil
	}
	_, err := r.addons.PatchAddOnStatus(ctx, f.addon, conclude(f, p, results))
	return err
}

// conclude returns the add-on with the status that is true after the pass.
func conclude(f facts, p plan, results []result) *addonv1beta1.ManagedClusterAddOn {
	after := f.addon.DeepCopy()
	if p.declare {
		declare(after.Status.Registrations)
	}
	if p.remove == removeAll {
		meta.RemoveStatusCondition(&after.Status.Conditions, csr.ConditionRotated)
	}
	for _, c := range []*metav1.Condition{rotated(p, results), p.available} {
		if c != nil {
			reconcile.SetCondition(&after.Status.Conditions, *c, f.now)
		}
	}
	return after
}

// declare says in every registration for the hub how we get its credential.
func declare(registrations []addonv1beta1.RegistrationConfig) {
	for i := range registrations {
		if registrations[i].Type != addonv1beta1.KubeClient {
			continue
		}
		if registrations[i].KubeClient == nil {
			registrations[i].KubeClient = &addonv1beta1.KubeClientConfig{}
		}
		registrations[i].KubeClient.Driver = driverCSR
	}
}

// rotated joins what came of the registrations in the one condition that they share: trouble first, then nothing while
// one of them waits, then the good news. Where there are several, it names the signer.
func rotated(p plan, results []result) *metav1.Condition {
	all := slices.Concat(results, p.refused)
	if len(all) == 0 {
		return nil
	}
	worst := slices.MinFunc(all, func(a, b result) int { return cmp.Compare(rank(a.condition), rank(b.condition)) })
	if worst.condition == nil || (p.waits && worst.condition.Status == metav1.ConditionTrue) {
		return nil
	}
	c := *worst.condition
	c.Type = csr.ConditionRotated
	if len(all) > 1 && worst.signer != "" {
		c.Message += fmt.Sprintf(" (signer %s)", worst.signer)
	}
	return &c
}

func rank(c *metav1.Condition) int {
	switch {
	case c == nil:
		return 1
	case c.Status == metav1.ConditionTrue:
		return 2
	}
	return 0
}

// withNamespaces returns what is to be watched, with the namespaces that Secrets wait for.
func withNamespaces(p plan, results []result) []target {
	watch := slices.Clone(p.watch)
	for _, res := range results {
		if res.missing == "" {
			continue
		}
		if t := (target{side: p.place.side, name: res.missing}); !slices.Contains(watch, t) {
			watch = append(watch, t)
		}
	}
	return watch
}

// settle joins the ends of all registrations and of the health.
func settle(p plan, results []result) reconcile.Outcome {
	outcome := reconcile.DoneUntil(p.wake)
	for _, res := range results {
		outcome = outcome.And(res.outcome)
	}
	return outcome
}
