package token

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// intent is the purpose of a pass.
type intent int

const (
	// intentNone leaves everything as it is.
	intentNone intent = iota
	// intentKeep creates and repairs the infrastructure.
	intentKeep
	// intentRemove deletes the infrastructure and removes the condition.
	intentRemove
	// intentRefuse deletes the infrastructure and explains why in the condition.
	intentRefuse
)

// plan is the decision of a pass.
type plan struct {
	intent intent
	// steps has one step for each object of wanted, in its order.
	steps []step
	// why is the reason of a refusal, for the condition.
	why string
}

// decide returns the plan for the facts.
func decide(f facts) plan {
	switch {
	case f.addOn == nil:
		return plan{intent: intentRemove, steps: removals(f.have, f.granted)}
	case !f.accepted && !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have, f.granted)}
	case !f.accepted:
		return plan{intent: intentRefuse, steps: removals(f.have), why: fmt.Sprintf("the hub does not accept cluster %s, "+
			"so its add-ons have no identity on the hub; set spec.hubAcceptsClient of ManagedCluster %s to true to accept it",
			f.key.Namespace, f.key.Namespace)}
	case hookRuns(f.addOn):
		return plan{}
	case f.addOn.DeletionTimestamp != nil, !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have, f.granted)}
	}
	p := plan{intent: intentKeep}
	for i, want := range wanted(f.key, f.addOn) {
		p.steps = append(p.steps, towards(f.have[i], want, f.addOn))
	}
	return p
}

// hookRuns reports whether an add-on that is being deleted waits for what may need the hub: a pre-delete hook of OCM,
// or what a finalizer of the author of the add-on stands for. The finalizers of Kubernetes, and that of works on a
// hosting cluster, wait for nothing of the agent.
func hookRuns(addOn metav1.Object) bool {
	return addOn.GetDeletionTimestamp() != nil && slices.ContainsFunc(addOn.GetFinalizers(), func(finalizer string) bool {
		switch finalizer {
		case metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents,
			addonv1beta1.AddonHostingManifestFinalizer, addonv1alpha1.AddonDeprecatedHostingManifestFinalizer:
			return false
		}
		return true
	})
}

// usesToken reports whether the agent has chosen the driver token for a credential of the hub's API server.
func usesToken(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return addonapi.HasDriver(addOn, tokens.Driver)
}

// removals returns the steps that delete the objects of all lists.
func removals(lists ...[]client.Object) []step {
	var steps []step
	for _, have := range lists {
		for _, object := range have {
			if object != nil {
				steps = append(steps, planned(reconcile.Delete, object, nil))
			}
		}
	}
	return steps
}

func planned(verb reconcile.Verb, before, after client.Object) step {
	return step{Step: reconcile.Step[client.Object]{Verb: verb, Before: before, After: after}}
}

// towards returns the step from an existing object, nil for none, to the desired one.
func towards(there, want client.Object, addOn *addonv1beta1.ManagedClusterAddOn) step {
	switch {
	case there == nil:
		return planned(reconcile.Create, nil, want)
	case !labelled(there, addOn.Name) && !ownedByName(there, addOn):
		return step{blocked: &takenError{there}}
	case there.GetDeletionTimestamp() != nil:
		return step{blocked: fmt.Errorf("waiting until %s, which is being deleted, is gone", reconcile.Describe(there))}
	case ofEarlier(there, addOn):
		return planned(reconcile.Replace, there, want)
	}
	after, possible := repaired(there, want)
	switch {
	case !possible:
		return planned(reconcile.Replace, there, want)
	case equality.Semantic.DeepEqual(there, after):
		return planned(reconcile.Keep, there, there)
	}
	return planned(reconcile.Patch, there, after)
}
