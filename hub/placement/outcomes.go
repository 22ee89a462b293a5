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
	o.mu.Lock()
	known, ok := o.byCluster[cluster.UID]
	o.mu.Unlock()
	if ok && known.version == cluster.ResourceVersion {
		return known.outcome
	}
	found := r.look(of)
	if found.unasked {
		return found
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byCluster == nil || len(o.byCluster) >= maxOutcomes {
		o.byCluster = map[types.UID]knownOutcome{}
	}
	o.byCluster[cluster.UID] = knownOutcome{cluster.ResourceVersion, found}
	return found
}
