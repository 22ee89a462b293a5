package hubcrash_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// history holds what became of all add-ons and works, in the order of the API server.
type history struct {
	mu     sync.Mutex
	events []change
}

// change is one version of an add-on or a work.
type change struct {
	version int
	gone    bool
	object  client.Object
}

// record records the history until the test ends.
func record(t *testing.T) *history {
	t.Helper()
	h := &history{}
	for _, kind := range []client.ObjectList{&addonv1alpha1.ManagedClusterAddOnList{}, &workv1.ManifestWorkList{}} {
		w, err := plane.Client.Watch(t.Context(), kind)
		require.NoError(t, err)
		t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				h.add(event)
			}
		}()
	}
	return h
}

func (h *history) add(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	version, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, change{version: version, gone: event.Type == watch.Deleted, object: object})
}

// sorted returns all that happened, in order.
func (h *history) sorted() []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(h.events), func(a, b change) int {
		return cmp.Compare(a.version, b.version)
	})
}

// caughtUp returns an error while an object that is gone has not been seen gone.
func (h *history) caughtUp(context.Context) error {
	there := map[string]bool{}
	for _, c := range h.sorted() {
		there[fmt.Sprintf("%T %s", c.object, client.ObjectKeyFromObject(c.object))] = !c.gone
	}
	for key, still := range there {
		if still {
			return fmt.Errorf("%s is not seen gone yet", key)
		}
	}
	return nil
}

// hashes finds the hash of a content.
var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

func hashOf(text string) string { return hashes.FindString(text) }

// past is the state of the clusters at a moment of the history.
type past struct {
	phase phase
	// target is the hash that the clusters get in this phase; before is the former one.
	target, before string
	desired        map[string]string
	applied        map[string]string
	// works are the hashes of the works of each cluster.
	works map[string]map[string]string
}

// era is a phase that began with a version of the API server.
type era struct {
	phase
	from int
	hash string
}

// judge requires that no rule was broken at any moment of the history.
func (h *history) judge(t *testing.T, eras []era) {
	t.Helper()
	p := past{desired: map[string]string{}, applied: map[string]string{}, works: map[string]map[string]string{}}
	for _, c := range h.sorted() {
		for len(eras) > 0 && c.version >= eras[0].from {
			p.phase, p.before, p.target = eras[0].phase, p.target, eras[0].hash
			eras = eras[1:]
		}
		if problem := p.apply(c); problem != "" {
			assert.Fail(t, problem, "at version %d, while it was to %s", c.version, p.phase.name)
			return
		}
	}
}

// apply takes a change over and returns which rule it breaks; "" for none.
func (p *past) apply(c change) string {
	switch object := c.object.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		return p.addOn(object, c.gone)
	case *workv1.ManifestWork:
		return p.work(object, c.gone)
	}
	return ""
}

func (p *past) addOn(addOn *addonv1alpha1.ManagedClusterAddOn, gone bool) string {
	cluster := addOn.Namespace
	delete(p.desired, cluster)
	delete(p.applied, cluster)
	if gone || addOn.DeletionTimestamp != nil {
		if !slices.Contains(p.phase.leaving, cluster) {
			return "the add-on on " + cluster + " is uninstalled though it is selected"
		}
		return ""
	}
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.DesiredConfig != nil {
			p.desired[cluster] = reference.DesiredConfig.SpecHash
		}
		if reference.LastAppliedConfig != nil {
			p.applied[cluster] = reference.LastAppliedConfig.SpecHash
		}
	}
	return p.moving()
}

func (p *past) work(work *workv1.ManifestWork, gone bool) string {
	cluster := cmp.Or(work.Labels[names.LabelAddonNamespace], work.Namespace)
	if p.works[cluster] == nil {
		p.works[cluster] = map[string]string{}
	}
	key := work.Namespace + "/" + work.Name
	was, is := p.works[cluster][key], hashOf(work.Annotations[names.AnnotationConfigSpecHash])
	if gone || is == "" { // A hook has no hash.
		delete(p.works[cluster], key)
		return ""
	}
	p.works[cluster][key] = is
	switch {
	case is != p.target && is != p.before:
		return fmt.Sprintf("work %s has content %s, which is neither the new one nor the former one", key, is)
	case was == p.target && is != p.target:
		return fmt.Sprintf("work %s goes back from the new content to the former one", key)
	case was != is && p.desired[cluster] != "" && p.desired[cluster] != is:
		return fmt.Sprintf("work %s gets content %s while %s is desired", key, is, p.desired[cluster])
	}
	return p.moving()
}

// moving returns an error when more clusters are on their way to a content than may be.
func (p *past) moving() string {
	var moving []string
	for _, cluster := range slices.Sorted(maps.Keys(p.desired)) {
		on := p.desired[cluster] != p.applied[cluster]
		for _, hash := range p.works[cluster] {
			on = on || hash != p.applied[cluster]
		}
		if on {
			moving = append(moving, cluster)
		}
	}
	if len(moving) <= maxConcurrency {
		return ""
	}
	return fmt.Sprintf("%s move at the same time, and %d may", strings.Join(moving, ", "), maxConcurrency)
}
