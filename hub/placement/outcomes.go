package placement

import "k8s.io/apimachinery/pkg/types"

// maxOutcomes is the number of outcomes that are remembered for a Placement with expressions.
const maxOutcomes = 10_000

// outcomeOf returns the outcome of the rules for a cluster.
func (o *outcomes) outcomeOf(of *view, r *rules) outcome {
	cluster := of.cluster
	if !r.expressions || cluster.ResourceVersion == "" {
		return r.look(of)
	}
	known, ok := o.Get(cluster.UID)
	if ok && known.version == cluster.ResourceVersion {
		return known.outcome
	}
	found := r.look(of)
	if found.unasked {
		return found
	}
	if o.Len() >= maxOutcomes {
		o.Take(func(types.UID, knownOutcome) bool { return true })
	}
	o.Put(cluster.UID, knownOutcome{cluster.ResourceVersion, found})
	return found
}
