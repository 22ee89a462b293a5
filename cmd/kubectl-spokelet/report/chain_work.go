package report

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// OfWork returns what is wrong with a work; nil for nothing.
func OfWork(w *fleet.Work) *Problem {
	applied := meta.FindStatusCondition(w.Status.Conditions, "Applied")
	available := meta.FindStatusCondition(w.Status.Conditions, "Available")
	cause := &causes.Cause{}
	switch {
	case len(w.Spec.Workload.Manifests) == 0 && !w.Metadata.Deleting():
		return nil // An agent has nothing to say of a work without manifests.
	case w.Metadata.Deleting():
		cause.Code, cause.Condition = causes.WorkDeletion, meta.FindStatusCondition(w.Status.Conditions, "Deleting")
	case applied == nil:
		cause.Code, cause.Since = causes.WorkNotSeen, w.Metadata.CreationTimestamp.Time
	case isBehind(w, applied): // Nothing says when the work was changed.
		cause.Code = causes.WorkNotSeen
	case applied.Status != metav1.ConditionTrue:
		cause.Code, cause.Condition = causes.WorkNotApplied, applied
	case available == nil || available.Status != metav1.ConditionTrue:
		cause.Code, cause.Condition = causes.WorkNotAvailable, available
	default:
		return nil
	}
	if cause.Condition != nil {
		cause.Since = cause.Condition.LastTransitionTime.Time
	}
	p := problem(cause, KindWork, w.Metadata)
	if said := firstManifest(w); said != "" && cause.Code != causes.WorkDeletion {
		p.Message = said
	}
	if cause.Code == causes.WorkNotSeen {
		p.Message = fmt.Sprintf("the agent has not reported generation %d", w.Metadata.Generation)
	}
	p.Next = Command(KindWork, "kubectl spokelet why work {name} -n {cluster}",
		"{name}", w.Metadata.Name, "{cluster}", w.Metadata.Namespace)
	return p
}

// isBehind reports whether an agent reported another generation of a work than the present one. OCM's agent leaves a
// work alone that is complete, and reports no later generation of it.
func isBehind(w *fleet.Work, applied *metav1.Condition) bool {
	return applied.ObservedGeneration != 0 && applied.ObservedGeneration != w.Metadata.Generation &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkComplete)
}

// passes reports whether the problem of a work is one that passes while its add-on works: the agent is about to see a
// change, or to remove a work that the add-on does not have any more.
func passes(w *fleet.Work, p *Problem) bool {
	seen := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied) != nil
	return p.Code == causes.WorkNotSeen && seen || p.Code == causes.WorkDeletion
}

// firstManifest returns what the agent says of the first manifest that is not applied or not available; empty where all
// are.
func firstManifest(w *fleet.Work) string {
	for _, kind := range ofManifest() {
		for _, m := range w.Status.Resources.Manifests {
			if c := untrue(m.Conditions, kind); c != nil {
				return fmt.Sprintf("%s: %s", message.Object(m.Resource.Kind, m.Resource.Namespace, m.Resource.Name), c.Message)
			}
		}
	}
	return ""
}

// ofManifest are the conditions that say whether a manifest is well, the first one first.
func ofManifest() []string { return []string{workv1.ManifestApplied, workv1.ManifestAvailable} }

// untrue returns the first condition of some types that is there and not True; nil for none.
func untrue(conditions []metav1.Condition, types ...string) *metav1.Condition {
	for _, kind := range types {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// WorkChain follows a work.
func WorkChain(namespace, name string, w *fleet.Work) Chain {
	chain := Chain{Kind: KindWork, Namespace: namespace, Name: name}
	if w == nil {
		chain.Problem = &Problem{
			Code: causes.ObjectMissing, Title: "a work does not exist", Kind: KindWork, Namespace: namespace, Name: name,
			Message: "there is no ManifestWork of this name for the cluster",
			Next:    Command(KindWork, "kubectl spokelet get works -n {cluster}", "{cluster}", namespace),
		}
		return chain
	}
	chain.Problem = OfWork(w)
	chain.Healthy = chain.Problem == nil
	if chain.Healthy && len(w.Spec.Workload.Manifests) == 0 {
		chain.Steps = []Step{{Name: "applied", Evidence: "0 manifests", State: OK}}
		return chain
	}
	of := said(w.Status.Conditions)
	chain.Steps = named([]Step{
		of.condition("applied", "Applied", Count(len(w.Spec.Workload.Manifests), "manifest")),
		of.condition("available", "Available", ""), of.optional("deleting", "Deleting"),
	})
	return chain.mend()
}
