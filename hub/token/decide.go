package token

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
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
	// steps come first: that of the ServiceAccount, or all removals.
	steps []step
	// grants let the agent of the cluster ask for tokens; they are run once the ServiceAccount is ours.
	grants []step
	// withdraw removes the grants; run instead when the ServiceAccount is that of others.
	withdraw []step
	// why is the reason of a refusal, for the condition.
	why string
}

// destroys reports whether the plan deletes something, also to make it again, or gives it an owner: Kubernetes collects
// what has an owner that does not exist.
func (p plan) destroys() bool {
	return slices.ContainsFunc(slices.Concat(p.steps, p.grants), func(s step) bool {
		return s.Verb == reconcile.Delete || s.Verb == reconcile.Replace || s.Verb == reconcile.Patch &&
			!equality.Semantic.DeepEqual(s.Before.GetOwnerReferences(), s.After.GetOwnerReferences())
	})
}

// decide returns the plan for the facts.
func decide(f facts) plan {
	switch {
	case f.addOn == nil, !f.accepted && !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have)}
	case !f.accepted:
		return plan{intent: intentRefuse, steps: removals(f.have), why: fmt.Sprintf("the hub does not accept cluster %s, "+
			"so its add-ons have no identity on the hub; set spec.hubAcceptsClient of ManagedCluster %s to true to accept it",
			f.key.Namespace, f.key.Namespace)}
	case addonapi.HookRuns(f.addOn):
		return plan{}
	case f.addOn.DeletionTimestamp != nil, !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have)}
	case f.foreign != nil:
		// What is there stays: the namespace may have lost its label by mistake.
		return plan{intent: intentRefuse, why: f.foreign.Error()}
	}
	p := plan{intent: intentKeep, withdraw: removals(f.have[1:])}
	for i, want := range wanted(f.key, f.addOn) {
		if s := towards(f.have[i], want, f.addOn); i == 0 {
			p.steps = []step{s}
		} else {
			p.grants = append(p.grants, s)
		}
	}
	return p
}

// usesToken reports whether the agent has chosen the driver token for a credential of the hub's API server.
func usesToken(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return addonapi.HasDriver(addOn, tokens.Driver)
}

// removals returns the steps that delete objects; nil ones do not exist.
func removals(have []client.Object) []step {
	var steps []step
	for _, object := range have {
		if object != nil {
			steps = append(steps, planned(reconcile.Delete, object, nil))
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
