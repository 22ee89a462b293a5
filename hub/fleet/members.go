package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// Members knows something of the ManagedClusterAddOns of each name, by cluster. Those of a name are all read once, when
// they are asked about, and from then on only those that changed: a fleet of thousands asks after each change.
type Members[T any] struct {
	// Strict makes an add-on that cannot be decoded an error. Otherwise it is left out, or stays what was known of it.
	Strict bool

	mu    sync.Mutex
	known map[string]map[string]T
	// noted are the clusters on which the add-on of a name changed, since all of that name were read.
	noted map[string]map[string]struct{}
}

// Change holds what was known of an add-on, and what is known now; the zero value where there is none.
type Change[T any] struct{ Before, After T }

// Note remembers that an add-on changed. Nothing is remembered of names that were not asked about.
func (m *Members[T]) Note(addOn client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if noted := m.noted[addOn.GetName()]; noted != nil {
		noted[addOn.GetNamespace()] = struct{}{}
	}
}

// Read reads from a cache. It returns what is known of all add-ons of a name, by cluster, and what changed since the
// last call. see returns what is to be known of an add-on, from what was. No two goroutines read the same name, and the
// map is valid until the next call.
func (m *Members[T]) Read(
	ctx context.Context, addOns addonapi.Client, name string,
	see func(addOn *addonv1beta1.ManagedClusterAddOn, before T) T,
) (map[string]T, []Change[T], error) {
	known, noted := m.begin(name)
	objects, err := m.changed(ctx, addOns, name, noted)
	if known == nil {
		objects, err = m.list(ctx, addOns, name)
	}
	changes := make(map[string]Change[T], len(objects))
	for cluster, object := range objects {
		change := Change[T]{Before: known[cluster]}
		if object != nil && err == nil {
			var addOn *addonv1beta1.ManagedClusterAddOn
			if addOn, err = addonapi.AddOn(object); err == nil {
				change.After = see(addOn, change.Before)
			}
		}
		changes[cluster] = change
	}
	if err != nil {
		m.again(name, noted)
		return nil, nil, err
	}
	if known == nil {
		known = make(map[string]T, len(changes))
	}
	for cluster, change := range changes {
		if known[cluster] = change.After; objects[cluster] == nil {
			delete(known, cluster)
		}
	}
	m.Keep(name, known)
	return known, slices.Collect(maps.Values(changes)), nil
}

// list reads all add-ons of a name, by cluster.
func (m *Members[T]) list(
	ctx context.Context, addOns addonapi.Client, name string,
) (map[string]client.Object, error) {
	options := []client.ListOption{client.MatchingFields{addonapi.IndexName: name}}
	if !m.Strict {
		options = append(options, decode.LeaveOut)
	}
	all, err := addOns.ListWatched(ctx, options...)
	objects := make(map[string]client.Object, len(all))
	for _, object := range all {
		objects[object.GetNamespace()] = object
	}
	return objects, err
}

// changed reads the add-ons of a name on clusters; nil for one that does not exist.
func (m *Members[T]) changed(
	ctx context.Context, addOns addonapi.Client, name string, clusters map[string]struct{},
) (map[string]client.Object, error) {
	objects := make(map[string]client.Object, len(clusters))
	for cluster := range clusters {
		object, err := addOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: name})
		switch {
		case !m.Strict && decode.IsUnknown(err):
		case err != nil:
			return nil, err
		default:
			objects[cluster] = object
		}
	}
	return objects, nil
}

// begin returns what is known of the add-ons of a name, nil for nothing, and the clusters on which they changed since.
// What changes from here on is noted.
func (m *Members[T]) begin(name string) (map[string]T, map[string]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, noted := m.known[name], m.noted[name]
	if m.noted == nil {
		m.noted = map[string]map[string]struct{}{}
	}
	m.noted[name] = map[string]struct{}{}
	return known, noted
}

// again notes what could not be read.
func (m *Members[T]) again(name string, clusters map[string]struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[name] == nil {
		delete(m.noted, name)
		return
	}
	for cluster := range clusters {
		m.noted[name][cluster] = struct{}{}
	}
}

// Keep replaces what is known of the add-ons of a name. Of a name without any, nothing is remembered.
func (m *Members[T]) Keep(name string, known map[string]T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(known) == 0 {
		delete(m.known, name)
		delete(m.noted, name)
		return
	}
	if m.known == nil {
		m.known = map[string]map[string]T{}
	}
	m.known[name] = known
}

// Known returns what was known of an add-on when it was read last; the zero value for nothing.
func (m *Members[T]) Known(addOn metav1.Object) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[addOn.GetName()][addOn.GetNamespace()]
}

// Unserved returns why a cluster does not get the add-ons of the placements that select it, now or soon; nil when it
// does. cluster and its namespace are nil when they do not exist; the hub manager creates the namespace. foreign
// reports that the cause is a namespace of others, which only a person changes.
func Unserved(
	name string, cluster *clusterv1.ManagedCluster, namespace *metav1.PartialObjectMetadata,
) (foreign bool, err error) {
	switch {
	case cluster == nil:
		return false, fmt.Errorf("there is no cluster %s", name)
	case !cluster.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("cluster %s is being deleted", name)
	case !cluster.Spec.HubAcceptsClient:
		return false, fmt.Errorf("cluster %s is not accepted", name)
	case namespace == nil:
		return false, nil
	}
	err = names.CheckNamespace(namespace, name)
	return err != nil, err
}

// Tolerated reports whether a toleration covers a taint that was added at an instant, and whether all of those end
// that do: the last one of them until an instant.
func Tolerated(
	tolerations []clusterv1beta1.Toleration, taint clusterv1.Taint, added time.Time,
) (covered, end bool, until time.Time) {
	for _, t := range tolerations {
		if !covers(t, taint) {
			continue
		}
		// The API gives the seconds no meaning for NoSelectIfNew.
		if t.TolerationSeconds == nil || taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
			return true, false, time.Time{}
		}
		const most = 100 * 366 * 24 * 60 * 60 // A Duration cannot hold the largest number of seconds.
		ends := added.Add(time.Duration(min(*t.TolerationSeconds, most)) * time.Second)
		if covered, end = true, true; ends.After(until) {
			until = ends
		}
	}
	return covered, end, until
}

// covers reports whether a toleration matches a taint; an empty key matches all keys, an empty effect all effects.
func covers(t clusterv1beta1.Toleration, taint clusterv1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == clusterv1beta1.TolerationOpExists || t.Value == taint.Value
}
