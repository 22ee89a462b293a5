package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// publish writes all that a pass found out in one patch.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, results []result) error {
	if f.addon == nil {
		return nil
	}
	_, err := r.addons.PatchAddOnStatus(ctx, f.addon, conclude(f, p, results))
	return err
}

// kinds are the types of the conditions that tell of credentials, one for each driver.
func kinds() []string { return []string{csr.ConditionRotated, token.ConditionRefreshed} }

// conclude returns the add-on with the status that is true after the pass.
func conclude(f facts, p plan, results []result) *addonv1beta1.ManagedClusterAddOn {
	after := f.addon.DeepCopy()
	conditions := &after.Status.Conditions
	if p.declare != "" {
		declare(after.Status.Registrations, p.declare, token.User(f.cluster, f.name))
	}
	for _, kind := range kinds() {
		if isOver(kind, p, results) {
			meta.RemoveStatusCondition(conditions, kind)
		} else if c := told(kind, p, results); c != nil {
			reconcile.SetCondition(conditions, *withObsolete(c, f, p), f.now)
		}
	}
	concludeWorkloads(f, conditions)
	if c := explained(f, p, results); c != nil {
		reconcile.SetCondition(conditions, *c, f.now)
	}
	return after
}

// isOver reports whether a condition speaks of credentials that are no more: those of the other driver once all that
// are wanted now are there, or all when none is wanted.
func isOver(kind string, p plan, results []result) bool {
	if p.remove == removeAll {
		return true
	}
	for _, res := range slices.Concat(results, p.refused) {
		if res.kind == kind || !res.served {
			return false
		}
	}
	return p.remove == removeStale && !p.waits
}

// told joins what came of the registrations in the one condition that those with the same driver share: trouble first,
// then nothing while one of them waits, then the good news. Where there are several, it names the signer.
func told(kind string, p plan, results []result) *metav1.Condition {
	all := slices.DeleteFunc(slices.Concat(results, p.refused), func(res result) bool { return res.kind != kind })
	if len(all) == 0 {
		return nil
	}
	worst := slices.MinFunc(all, func(a, b result) int { return cmp.Compare(rank(a.condition), rank(b.condition)) })
	if worst.condition == nil || (p.waits && worst.condition.Status == metav1.ConditionTrue) {
		return nil
	}
	c := *worst.condition
	if len(all) > 1 && worst.signer != "" {
		c.Message += fmt.Sprintf(" (signer %s)", worst.signer)
	}
	return &c
}

// withObsolete adds to bad news which credentials of earlier registrations stay until the new ones are there. Who
// wanted to withdraw one by the change waits for that.
func withObsolete(c *metav1.Condition, f facts, p plan) *metav1.Condition {
	if c.Status != metav1.ConditionFalse || p.remove != removeStale {
		return c
	}
	var stay []string
	for _, s := range f.secrets {
		needed := func(reg registration) bool { return s.side == p.place.side && s.key == reg.secret }
		if !s.pending && !slices.ContainsFunc(p.serve, needed) {
			stay = append(stay, s.key.String())
		}
	}
	if len(stay) == 0 {
		return c
	}
	slices.Sort(stay)
	added := *c
	added.Message += fmt.Sprintf("; secret %s of an earlier registration stays until all new credentials are there",
		strings.Join(stay, ", "))
	return &added
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

// explained returns the health to tell, with the likely cause where the add-on agent is silent.
func explained(f facts, p plan, results []result) *metav1.Condition {
	if p.available == nil || !p.explain {
		return p.available
	}
	c := *p.available
	if cause := likelyCause(f, p, results); cause != "" {
		c.Message += " " + cause
	}
	return &c
}

// withWaits returns what is to be watched, with what Secrets wait for.
func withWaits(p plan, results []result) []target {
	watch := slices.Clone(p.watch)
	for _, res := range results {
		until := res.until
		if res.missing != "" {
			until = append(slices.Clone(until), target{side: p.place.side, kind: kindNamespace, name: res.missing})
		}
		for _, t := range until {
			if !slices.Contains(watch, t) {
				watch = append(watch, t)
			}
		}
	}
	return watch
}

// settle joins the ends of all registrations, of the health and of what failed besides.
func settle(ctx context.Context, p plan, results []result, failures ...error) reconcile.Outcome {
	outcome := reconcile.DoneUntil(p.wake)
	var hurry time.Time
	for _, res := range results {
		outcome, hurry = outcome.And(res.outcome), reconcile.Earliest(hurry, res.hurry)
	}
	for _, err := range failures {
		outcome = outcome.And(reconcile.RetryBy(ctx, err, hurry))
	}
	return outcome
}
