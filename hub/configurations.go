package hub

import (
	"cmp"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// maxAdmitted is how many add-ons that were admitted to a new configuration may wait for their pass before the planner
// waits.
const maxAdmitted = 1024

// configurations configures add-ons and rolls their configurations out.
type configurations struct {
	configurer *configure.Configurer
	roller     *rollout.Reconciler
	admitted   chan event.GenericEvent
}

// newConfigurations returns what configures the add-ons of a hub, and adds the watches of configurations of any kind to
// the manager.
func newConfigurations(
	mgr ctrl.Manager, c Config, addOns addonapi.Client, placements *fleet.Placements,
) (*configurations, error) {
	changed := objectwatch.NewChanges(2)
	others, err := objectwatch.New(mgr.GetConfig(), c.WatchedConfigs, changed.Send)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(others); err != nil {
		return nil, fmt.Errorf("registering the watch of configurations of any kind: %w", err)
	}
	waves, err := rollout.NewWaves(metrics.Registry)
	if err != nil {
		return nil, err
	}
	store := &addonconfig.Store{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Versions: addOns.Configs,
		Home: cmp.Or(c.Namespace, names.NamespaceHub), Others: others, Limit: c.WatchedConfigs, Packed: true,
		Clock: clock.RealClock{},
	}
	all := &configurations{admitted: make(chan event.GenericEvent, maxAdmitted)}
	all.roller = &rollout.Reconciler{
		Client: mgr.GetClient(), AddOns: addOns, Store: store, Clock: clock.RealClock{}, Wake: all.admitted,
		Changed: changed.Receiver(0), Placements: placements, Waves: waves,
	}
	all.configurer = &configure.Configurer{
		AddOns: addOns, Client: mgr.GetClient(), Store: store, Admission: all.roller.Admission, Changed: changed.Receiver(1),
		Placements: placements, Precedence: c.ConfigPrecedence,
	}
	return all, nil
}

// follow makes clusters wait for what policies and windows say; nil says nothing.
func (c *configurations) follow(gates *gate.Reader) {
	c.roller.Gates, c.configurer.Gates = gates, gates
	if gates != nil {
		gates.Has = c.configurer.Has
	}
}

// watch adds the watches of all that decides the configuration of add-ons, and of their admission to a rollout.
func (c *configurations) watch(b *builder.Builder) *builder.Builder {
	return c.configurer.Watch(b).WatchesRawSource(source.Channel(c.admitted, &handler.EnqueueRequestForObject{}))
}
