package suite

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
)

// Configurations configures and rolls out add-ons in a manager of a test, as the hub manager does.
type Configurations struct {
	// Configurer decides the configuration of each add-on.
	Configurer *configure.Configurer
	// Rollout plans; its controller must be added to the manager.
	Rollout  *rollout.Reconciler
	admitted chan event.GenericEvent
}

// NewConfigurations returns what configures the add-ons of a manager, with contents in the namespace home.
func NewConfigurations(mgr ctrl.Manager, addOns addonapi.Client, home string) *Configurations {
	store := &addonconfig.Store{Client: mgr.GetClient(), Home: home}
	c := &Configurations{admitted: make(chan event.GenericEvent, 1024)}
	placements := &fleet.Placements{Client: mgr.GetClient(), Clock: clock.RealClock{}}
	c.Rollout = &rollout.Reconciler{
		AddOns: addOns, Client: mgr.GetClient(), Store: store, Clock: clock.RealClock{}, Wake: c.admitted,
		Placements: placements,
	}
	c.Configurer = &configure.Configurer{
		AddOns: addOns, Client: mgr.GetClient(), Store: store, Placements: placements,
		Admission: c.Rollout.Admission,
	}
	return c
}

// CachedConfigurations restricts a cache to the contents of configurations in the namespace home, which is all that the
// hub manager may read of that kind.
func CachedConfigurations(home string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&appsv1.ControllerRevision{}: {Namespaces: map[string]cache.Config{home: {}}},
	}}
}

// Watch adds the watches of all that decides the configuration of add-ons.
func (c *Configurations) Watch(b *builder.Builder) *builder.Builder {
	return c.Configurer.Watch(b).WatchesRawSource(source.Channel(c.admitted, &handler.EnqueueRequestForObject{}))
}
