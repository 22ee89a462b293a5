package configure

import (
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/gate"
)

// undo is what an add-on returns to from a content that was undone. The zero value is one that does not.
type undo struct {
	// content is the name of what was undone, and from the target with it.
	content string
	from    addonconfig.Target
	// failed is set where this cluster failed with it, and not set where all clusters return.
	failed bool
	// active reports whether the add-on has, or gets, what it had before in place of it, which is to.
	active bool
	to     []addonconfig.Chosen
	// kept is why it keeps what it has; empty when it is active.
	kept string
}

// admission decides about an add-on that returns, or keeps what it has, where no rollout does. Neither windows nor
// approvals hold a return.
func (u undo) admission(rules gate.Gate) addonconfig.Admission {
	if u.kept != "" {
		return addonconfig.Admission{Reason: causes.WaitsForTurn + "content " + u.content + " was undone, and " + u.kept}
	}
	why := rules.Paused().Held
	return addonconfig.Admission{Granted: why == "", Reason: why}
}
