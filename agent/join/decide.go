package join

import "github.com/spokelet/spokelet/csr"

// step is what is done with the credential Secret.
type step string

const (
	// stepHold leaves the Secret as it is; there is no valid credential.
	stepHold step = "hold"
	// stepKeep leaves the Secret as it is and keeps the new certificate aside until the ManagedCluster exists.
	stepKeep step = "keep"
	// stepStore stores the new pair.
	stepStore step = "store"
	// stepRewrite writes again what stands beside the pair in use.
	stepRewrite step = "rewrite"
	// stepReport leaves the Secret as it is; the credential is valid.
	stepReport step = "report"
)

// plan is what is done with the credential Secret, and the pair that it holds afterwards.
type plan struct {
	step step
	pair csr.Pair
}

// decide returns what is done with the credential Secret. ready reports whether the ManagedCluster is known to exist or
// is none of our business: a stored credential ends the joining for good, so none is stored before.
func decide(f Facts, ready bool, answer csr.Plan) plan {
	if answer.Step == csr.StepTake {
		if !ready {
			return plan{step: stepKeep, pair: answer.Pair}
		}
		return plan{step: stepStore, pair: answer.Pair}
	}
	verdict := Judge(f)
	inUse := f.Pair
	switch {
	case !ready:
		return plan{step: stepHold}
	case verdict.Valid():
		return plan{step: stepReport, pair: inUse}
	case verdict.Reason == ReasonRewrite:
		return plan{step: stepRewrite, pair: inUse}
	}
	return plan{step: stepHold}
}
