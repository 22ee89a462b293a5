package join

import "github.com/spokelet/spokelet/csr/issue"

// step is an action on the credential Secret.
type step string

const (
	// stepNone leaves the Secret as it is; there is no valid credential.
	stepNone step = "none"
	// stepDefer leaves the Secret as it is and keeps the new certificate with its pending key until the ManagedCluster
	// exists.
	stepDefer step = "defer"
	// stepStore stores the new pair.
	stepStore step = "store"
	// stepRewrite rewrites the other keys of the Secret and keeps the pair.
	stepRewrite step = "rewrite"
	// stepReport leaves the Secret as it is; its credential is valid.
	stepReport step = "report"
)

// plan is the action on the credential Secret, and the pair in it afterwards.
type plan struct {
	step step
	pair issue.Pair
}

// decide returns the action on the credential Secret. ready is set when the ManagedCluster exists, and always while
// serving. A stored credential ends the joining phase for good, so none is stored before the ManagedCluster exists.
func decide(f Facts, ready bool, answer issue.Plan) plan {
	if answer.Step == issue.StepTake {
		if !ready {
			return plan{step: stepDefer, pair: answer.Pair}
		}
		return plan{step: stepStore, pair: answer.Pair}
	}
	verdict := Judge(f)
	inUse := f.Pair
	switch {
	case !ready:
		return plan{step: stepNone}
	case verdict.Valid():
		return plan{step: stepReport, pair: inUse}
	case verdict.Reason == ReasonRewrite:
		return plan{step: stepRewrite, pair: inUse}
	}
	return plan{step: stepNone}
}
