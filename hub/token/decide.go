package token

import (
	"fmt"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tokens "github.com/spokelet/spokelet/internal/token"
)

// intent is what a pass is for.
type intent int

const (
	// intentNone leaves everything as it is.
	intentNone intent = iota
	// intentKeep makes and repairs the infrastructure.
	intentKeep
	// intentRemove removes the infrastructure and the condition.
	intentRemove
	// intentRefuse removes the infrastructure and says why in the condition.
	intentRefuse
)

// plan is what a pass does.
type plan struct {
	intent intent
	// steps has one step for each object of wanted, in its order.
	steps []step
	// why is the reason of a refusal, for people.
	why string
}

// decide plans what becomes of the infrastructure.
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
	case f.addOn.DeletionTimestamp != nil:
		return plan{}
	case !usesToken(f.addOn):
		return plan{intent: intentRemove, steps: removals(f.have, f.granted)}
	}
	p := plan{intent: intentKeep}
	for i, want := range wanted(f.key, f.addOn) {
		p.steps = append(p.steps, towards(f.have[i], want, f.addOn))
	}
	return p
}

// usesToken reports whether the agent has chosen the driver token for a credential of the hub's API server.
func usesToken(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	for i := range addOn.Status.Registrations {
		r := &addOn.Status.Registrations[i]
		if r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == tokens.Driver {
			return true
		}
	}
	return false
}

// removals removes what is there.
func removals(lists ...[]client.Object) []step {
	var steps []step
	for _, have := range lists {
		for _, object := range have {
			if object != nil {
				steps = append(steps, step{verb: remove, before: object})
			}
		}
	}
	return steps
}

// towards returns the step from an object that is there, nil for none, to the one that is wanted.
func towards(there, want client.Object, addOn *addonv1beta1.ManagedClusterAddOn) step {
	switch {
	case there == nil:
		return step{verb: create, after: want}
	case !labelled(there, addOn.Name) && !ownedByName(there, addOn):
		return step{verb: foreign, before: there, after: want}
	case there.GetDeletionTimestamp() != nil:
		return step{verb: leaving, before: there, after: want}
	case ofEarlier(there, addOn):
		return step{verb: replace, before: there, after: want}
	}
	after, possible := repaired(there, want)
	switch {
	case !possible:
		return step{verb: replace, before: there, after: want}
	case same(there, after):
		return step{verb: keep, before: there, after: there}
	}
	return step{verb: patch, before: there, after: after}
}
