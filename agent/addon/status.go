package addon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// kinds are the types of the conditions of credentials, one for each driver.
func kinds() []string { return []string{csr.ConditionRotated, token.ConditionRefreshed} }

// conclude returns the add-on with the status after the pass.
func conclude(f facts, p plan, results []result) *addonv1beta1.ManagedClusterAddOn {
	after := f.addon.DeepCopy()
	conditions := &after.Status.Conditions
	if p.declare != "" {
		declare(after.Status.Registrations, p.declare, token.User(f.cluster, f.name))
	}
	for _, kind := range kinds() {
		if isObsolete(kind, p, results) {
			meta.RemoveStatusCondition(conditions, kind)
		} else if c := credentialCondition(kind, p, results); c != nil {
			reconcile.SetCondition(conditions, *withObsolete(c, f, p), f.now)
		}
	}
	concludeWorkloads(f, conditions)
	if c := availableCondition(f, p, results); c != nil {
		reconcile.SetCondition(conditions, *c, f.now)
	}
	return after
}

// isObsolete reports whether the credentials of a condition no longer exist: those of the other driver once all present
// registrations are served, or all when there are no registrations.
func isObsolete(kind string, p plan, results []result) bool {
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

// credentialCondition joins the results of the registrations with the same driver in one condition: a failure first,
// then none while one of them waits, then success. If there are several, it names the signer.
func credentialCondition(kind string, p plan, results []result) *metav1.Condition {
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

// withObsolete adds to a failure the Secrets of earlier registrations that stay until the new credentials are stored. A
// person who changed the registrations to withdraw a credential needs to know.
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

// availableCondition returns the condition Available, with the likely cause if the lease is not renewed.
func availableCondition(f facts, p plan, results []result) *metav1.Condition {
	if p.available == nil || !p.explain {
		return p.available
	}
	c := *p.available
	if cause := likelyCause(f, p, results); cause != "" {
		c.Message += " " + cause
	}
	return &c
}

// withWaited returns the targets to watch, including those that Secrets wait for.
func withWaited(p plan, results []result) []target {
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

// awaited returns the names of the request objects that registrations wait for.
func awaited(results []result) []string {
	var all []string
	for _, res := range results {
		all = append(all, res.awaited...)
	}
	return all
}

// lookAtClock returns when credentials are judged again because one of the two clocks is wrong.
func (f facts) lookAtClock(p plan) reconcile.Outcome {
	if len(p.serve) == 0 {
		return reconcile.Done()
	}
	return reconcile.DoneUntil(issue.LookAtClock(f.ahead, f.now, time.Time{}))
}
