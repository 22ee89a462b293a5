package configure

import (
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
)

// Rehearse returns an add-on as the pass of a configurer leaves it that has no clients. The first placement owns its
// cluster. progress returns what is known of its works after the configuration in the given references is decided.
func (c *Configurer) Rehearse(
	cma *addonv1beta1.ClusterManagementAddOn, addOn *addonv1beta1.ManagedClusterAddOn, states addonconfig.States,
	now time.Time, progress func([]addonv1beta1.ConfigReference) addon.Progress,
) *addonv1beta1.ManagedClusterAddOn {
	f := facts{addOn: addOn, cma: cma, states: states}
	f.planned = c.planned(f)
	if f.admission = (Admission{Granted: true}); f.planned {
		f.admission = c.Admission(addOn, f.target().Rolled())
	}
	decided, after := decide(f), addOn.DeepCopy()
	if decided.undecided {
		return after
	}
	p := progress(decided.references)
	works := worksFacts{works: p.Works, nothing: p.Nothing, rollingOut: p.RollingOut, err: p.Err}
	record(f, decided, after, works, now)
	return after
}
