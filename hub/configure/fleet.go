package configure

import (
	"context"
	"maps"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// uses are what the add-ons of each name on all clusters refer to. They are read once, when they are asked about, and
// from then on only the add-ons that changed: a deletion asks for each of its thousands.
type uses struct {
	gate    reconcile.Gate
	members fleet.Members[usage]
	all     map[string]kinds
}

// kinds are the configurations of the add-ons of a name by their kind. Who asks, asks for one kind: of others, each
// cluster may have its own.
type kinds map[addonv1beta1.ConfigGroupResource]*counts

// counts are the configurations of a kind, with the number of clusters that name each or run with it.
type counts struct {
	configs  map[addonv1beta1.AddOnConfig]int
	contents map[addonconfig.Chosen]int
}

// usage holds what one add-on names and runs with.
type usage struct {
	configs  []addonv1beta1.AddOnConfig
	contents []addonconfig.Chosen
}

func usageOf(addOn *addonv1beta1.ManagedClusterAddOn, _ usage) usage {
	return usage{configs: addOn.Spec.Configs, contents: addonconfig.ChosenBy(addOn.Status.ConfigReferences)}
}

// add adds a number of clusters to the counts of what an add-on names and runs with.
func (k kinds) add(u usage, clusters int) {
	for _, config := range u.configs {
		count(k.of(config.ConfigGroupResource).configs, config, clusters)
	}
	for _, content := range u.contents {
		count(k.of(content.ConfigGroupResource).contents, content, clusters)
	}
}

func count[K comparable](all map[K]int, key K, by int) {
	if all[key] += by; all[key] == 0 {
		delete(all, key)
	}
}

// of returns the counts of a kind.
func (k kinds) of(kind addonv1beta1.ConfigGroupResource) *counts {
	if k[kind] == nil {
		k[kind] = &counts{configs: map[addonv1beta1.AddOnConfig]int{}, contents: map[addonconfig.Chosen]int{}}
	}
	return k[kind]
}

// ask asks a question about the configurations of a kind that all add-ons of a name refer to.
func (c *Configurer) ask(
	ctx context.Context, name string, kind addonv1beta1.ConfigGroupResource, question func(*counts) error,
) error {
	known := c.uses
	if known == nil {
		known = newUses() // No one notes changes, so nothing is remembered.
	}
	leave, err := known.gate.Enter(ctx, "read the add-ons named "+name)
	if err != nil {
		return err
	}
	defer leave()
	clusters, changes, err := known.members.Read(ctx, c.AddOns, name, usageOf)
	if err != nil {
		return err
	}
	all := known.all[name]
	if all == nil {
		all = kinds{}
	}
	for _, change := range changes {
		all.add(change.Before, -1)
		all.add(change.After, 1)
	}
	maps.DeleteFunc(all, func(_ addonv1beta1.ConfigGroupResource, of *counts) bool {
		return len(of.configs)+len(of.contents) == 0
	})
	if known.all[name] = all; len(clusters) == 0 {
		delete(known.all, name)
	}
	return question(all.of(kind))
}

func newUses() *uses {
	return &uses{members: fleet.Members[usage]{Strict: true}, all: map[string]kinds{}}
}

// notesAddOns notes which add-ons change, and starts no pass but that of takesOver. From then on what they refer to is
// remembered.
func (c *Configurer) notesAddOns() handler.EventHandler {
	noted := newUses()
	c.uses = noted
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { noted.members.Note(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { noted.members.Note(e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			noted.members.Note(e.Object)
			c.awaiting.note(client.ObjectKeyFromObject(e.Object), nil)
			c.takesOver(ctx, e.Object, q)
		},
	}
}
