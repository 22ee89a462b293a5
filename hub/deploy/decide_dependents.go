package deploy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	reasonWaitingForDependents = "WaitingForDependents"
	eventWaitingForDependents  = "WaitingForDependents"
	// maxDependents is how many dependents a sentence names.
	maxDependents = 5
)

// guardsDependents returns the add-on with exactly the finalizer that it needs because others depend on it; nil when
// nothing changes. It is there before anybody deletes the add-on, so that nothing that depends on it is left alone.
func guardsDependents(addOn *addonv1beta1.ManagedClusterAddOn, d dependentFacts) *addonv1beta1.ManagedClusterAddOn {
	if !d.knows || d.any == slices.Contains(addOn.Finalizers, names.FinalizerDependents) {
		return nil
	}
	after := addOn.DeepCopy()
	if d.any {
		after.Finalizers = append(after.Finalizers, names.FinalizerDependents)
		return after
	}
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == names.FinalizerDependents })
	return after
}

// decideDependents decides about an add-on that is being deleted and has the finalizer for those that depend on it.
// They go first, with all that they have on the cluster. Until then it stays as it is, and its hooks do not begin.
func decideDependents(f deletionFacts, p *deletionPlan) {
	d := f.dependents
	if d.knows && d.unknown == "" && len(d.there) == 0 {
		p.drop = []string{names.FinalizerDependents}
		p.because = []string{"No add-on that depends on it is on the cluster any more."}
		return
	}
	says := "The add-on goes after those on its cluster that depend on it: " + message.List(d.there, maxDependents, ", ") +
		". Delete them, or take it out of spec.dependsOn of their AddOnPolicies."
	switch {
	case !d.knows:
		says = "The add-on goes after those on its cluster that depend on it, and the hub manager reads no AddOnPolicies: " +
			"they are not served, or it may not list them. Its log says which. Mend that and restart it, or remove finalizer " +
			names.FinalizerDependents + " from the add-on if none is left."
	case d.unknown != "":
		says = "The add-on goes after those on its cluster that depend on it, and it is not known which do: " + d.unknown +
			"."
	}
	p.conditions = []metav1.Condition{{
		Type: names.ConditionAddOnDeleting, Status: metav1.ConditionFalse, Reason: reasonWaitingForDependents, Message: says,
	}}
}
