package configure

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
)

// fleets are what the add-ons of each name on all clusters refer to. A fleet is read once, when it is asked
// about, and from then on only the add-ons that changed: a deletion asks for each of its thousands.
type fleets struct {
	mu  sync.Mutex
	all map[string]*fleet
}

// fleet is what all add-ons of a name refer to.
type fleet struct {
	// clusters are the clusters with what their add-on names and runs with; changed are those on which it changed since.
	clusters map[string]usage
	changed  map[string]struct{}
	// configs and contents count on how many clusters each is named or run with.
	configs  map[addonv1beta1.AddOnConfig]int
	contents map[addonconfig.Chosen]int
}

// usage is what one add-on names and runs with.
type usage struct {
	configs  []addonv1beta1.AddOnConfig
	contents []addonconfig.Chosen
}

// usageOf returns what an add-on names and runs with; nothing for nil.
func usageOf(addOn *addonv1beta1.ManagedClusterAddOn) usage {
	if addOn == nil {
		return usage{}
	}
	return usage{configs: addOn.Spec.Configs, contents: chosen(addOn.Status.ConfigReferences)}
}

// put replaces what the add-on on a cluster names and runs with.
func (f *fleet) put(cluster string, next usage) {
	for _, config := range f.clusters[cluster].configs {
		if f.configs[config]--; f.configs[config] == 0 {
			delete(f.configs, config)
		}
	}
	for _, content := range f.clusters[cluster].contents {
		if f.contents[content]--; f.contents[content] == 0 {
			delete(f.contents, content)
		}
	}
	for _, config := range next.configs {
		f.configs[config]++
	}
	for _, content := range next.contents {
		f.contents[content]++
	}
	if f.clusters[cluster] = next; len(next.configs)+len(next.contents) == 0 {
		delete(f.clusters, cluster)
	}
}

// used returns the configurations in the specs of all add-ons of a name, in order, and the contents that they are to
// run with.
func (c *Configurer) used(
	ctx context.Context, name string,
) ([]addonv1beta1.AddOnConfig, map[addonconfig.Chosen]bool, error) {
	known := c.fleets
	if known == nil {
		known = &fleets{} // Nobody notes changes, so nothing is remembered.
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	f := known.all[name]
	if f == nil {
		addOns, err := c.AddOns.ListAddOns(ctx, client.MatchingFields{addonapi.IndexName: name})
		if err != nil {
			return nil, nil, err
		}
		f = &fleet{
			clusters: map[string]usage{}, changed: map[string]struct{}{}, configs: map[addonv1beta1.AddOnConfig]int{},
			contents: map[addonconfig.Chosen]int{},
		}
		for _, addOn := range addOns {
			f.put(addOn.Namespace, usageOf(addOn))
		}
	}
	for cluster := range f.changed {
		object, err := c.AddOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: name})
		if err != nil {
			return nil, nil, err
		}
		var addOn *addonv1beta1.ManagedClusterAddOn
		if object != nil {
			if addOn, err = addonapi.AddOn(object); err != nil {
				return nil, nil, err
			}
		}
		f.put(cluster, usageOf(addOn))
		delete(f.changed, cluster)
	}
	known.keep(name, f)
	contents := make(map[addonconfig.Chosen]bool, len(f.contents))
	for content := range f.contents {
		contents[content] = true
	}
	return slices.SortedFunc(maps.Keys(f.configs), func(a, b addonv1beta1.AddOnConfig) int {
		return strings.Compare(confighash.Key(a.ConfigGroupResource, a.ConfigReferent),
			confighash.Key(b.ConfigGroupResource, b.ConfigReferent))
	}), contents, nil
}

// keep remembers a fleet as long as it has clusters.
func (f *fleets) keep(name string, one *fleet) {
	if len(one.clusters) == 0 {
		delete(f.all, name)
		return
	}
	if f.all == nil {
		f.all = map[string]*fleet{}
	}
	f.all[name] = one
}

// note remembers that an add-on changed. Nothing is remembered of names that nobody asked about.
func (f *fleets) note(addOn client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.all[addOn.GetName()]; one != nil {
		one.changed[addOn.GetNamespace()] = struct{}{}
	}
}

// notesAddOns notes which add-ons change, and starts no pass. From then on fleets are remembered.
func (c *Configurer) notesAddOns() handler.EventHandler {
	noted := &fleets{}
	c.fleets = noted
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrlreconcile.Request {
		noted.note(o)
		return nil
	})
}
