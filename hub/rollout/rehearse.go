package rollout

import (
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
)

// World is what a pass knows about a ClusterManagementAddOn.
type World struct {
	Now time.Time
	CMA *addonv1beta1.ClusterManagementAddOn
	// Placements are what the placements of the install strategy have decided, in its order.
	Placements []*fleet.Decisions
	AddOns     []*addonv1beta1.ManagedClusterAddOn
	States     addonconfig.States
	// Served are those of the selected clusters without an add-on that will get it.
	Served map[string]bool
}

// Rehearse does the pass of a reconciler that has no clients: it plans, and remembers what the next pass and Admission
// need.
func (r *Reconciler) Rehearse(w World) {
	name, members := w.CMA.Name, make(map[string]*member, len(w.AddOns))
	for _, addOn := range w.AddOns {
		members[addOn.Namespace] = newMember(addOn, nil).saw(r.members.Known(addOn), w.Now)
	}
	r.members.Keep(name, members)
	r.replaceAdmissions(name, decide(facts{
		now: w.Now, cma: w.CMA, placements: w.Placements, members: members, states: w.States, served: w.Served,
		admitted: r.admissions[name],
	}).admissions)
}
