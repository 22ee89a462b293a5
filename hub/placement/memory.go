package placement

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/expressions"
	"github.com/spokelet/spokelet/internal/kept"
)

// memory holds what the reconciler remembers about Placements to save work: their parsed selectors, and what they are
// interested in. All of it follows from objects in the cluster.
type memory struct {
	mu          sync.RWMutex
	environment *cel.Env
	programs    *expressions.Programs
	placements  map[types.NamespacedName]remembered
	// told are the statuses as the last passes left them.
	told kept.Map[types.NamespacedName, clusterv1beta1.PlacementStatus]
	// refused are the names of the PlacementDecisions whose write the last passes were refused last.
	refused kept.Map[types.NamespacedName, string]
	// outside are the clusters that Placements which are not decided have outside of their sets, and since when. They must
	// not be changed.
	outside kept.Map[types.NamespacedName, map[string]time.Time]
}

// remembered holds what is known about one Placement.
type remembered struct {
	uid        types.UID
	generation int64
	interest   interest
}

// rulesOf returns the rules of a Placement, parsed once for each generation.
func (m *memory) rulesOf(placement *clusterv1beta1.Placement, key types.NamespacedName) *rules {
	m.mu.RLock()
	known, ok := m.placements[key]
	m.mu.RUnlock()
	if ok && known.uid == placement.UID && known.generation == placement.Generation {
		return known.interest.rules
	}
	return parse(placement.Spec, m.compile)
}

// compile checks an expression. The first one makes the environment.
func (m *memory) compile(path, text string) (expression, error) {
	environment, err := m.environmentOf()
	if err != nil {
		return expression{}, err
	}
	e := expression{path: path, text: text, program: func() (cel.Program, error) {
		return m.programs.Of(text, func() (cel.Program, error) { return compileIn(environment, text) })
	}, ready: func() bool { return m.programs.Has(text) }}
	if _, err := e.program(); err != nil {
		return expression{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

func (m *memory) environmentOf() (*cel.Env, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.environment == nil {
		environment, err := newEnvironment()
		if err != nil {
			return nil, fmt.Errorf("building the CEL environment: %w", err)
		}
		m.environment, m.programs = environment, &expressions.Programs{Limit: maxPrograms}
	}
	return m.environment, nil
}

// remember stores the interest of a Placement. A pass calls it before it reads the clusters: a cluster that changes
// earlier is read by the pass, one that changes later is compared with this interest.
func (m *memory) remember(placement *clusterv1beta1.Placement, key types.NamespacedName, in interest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.placements == nil {
		m.placements = map[types.NamespacedName]remembered{}
	}
	m.placements[key] = remembered{uid: placement.UID, generation: placement.Generation, interest: in}
}

// forget drops what is known about a Placement that is gone or left to others.
func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	delete(m.placements, key)
	m.mu.Unlock()
	m.told.Forget(key)
	m.refused.Forget(key)
	m.outside.Forget(key)
}

// noteOutside remembers the clusters that a Placement has outside of its sets.
func (m *memory) noteOutside(key types.NamespacedName, clusters map[string]time.Time) {
	m.outside.Change(key, func(map[string]time.Time) (map[string]time.Time, bool) { return clusters, len(clusters) > 0 })
}

// refuse remembers the PlacementDecision whose write a pass was refused last; empty means none.
func (m *memory) refuse(key types.NamespacedName, name string) {
	m.refused.Change(key, func(string) (string, bool) { return name, name != "" })
}

// tell remembers the status that a pass is about to write.
func (m *memory) tell(key types.NamespacedName, status *clusterv1beta1.PlacementStatus) {
	told := status.DeepCopy()
	for i := range told.Conditions {
		told.Conditions[i].LastTransitionTime = told.Conditions[i].LastTransitionTime.Rfc3339Copy()
	}
	m.told.Put(key, *told)
}

// altered reports whether a Placement has another status than the last pass left. While none has left any, all changes
// count: the first pass may have read what was before.
func (m *memory) altered(o client.Object) bool {
	placement, is := o.(*clusterv1beta1.Placement)
	told, known := m.told.Get(client.ObjectKeyFromObject(o))
	if !known {
		return is && !fleet.IsScheduledByOthers(placement)
	}
	return is && !equality.Semantic.DeepEqual(placement.Status, told)
}

// concernedBy returns the Placements whose decisions the change of a cluster may alter; nil stands for a cluster that
// does not exist.
func (m *memory) concernedBy(older, newer *clusterv1.ManagedCluster) touched {
	c := changeOf(older, newer)
	left := uint64(maxEventCost)
	was, is := &view{cluster: older, left: &left}, &view{cluster: newer, left: &left}
	return m.those(func(in interest) (string, bool) {
		concerned, itself := in.concerns(was, is, c)
		switch {
		case !itself:
			return fleet.NoCluster, concerned
		case newer != nil:
			return newer.Name, concerned
		}
		return older.Name, concerned
	})
}

// decidesAlike is interest.decidesAlike for a Placement that is known.
func (m *memory) decidesAlike(key types.NamespacedName, a, b *clusterv1.ManagedCluster) bool {
	m.mu.RLock()
	known, is := m.placements[key]
	m.mu.RUnlock()
	return is && known.interest.decidesAlike(a, b)
}

// boundTo returns the Placements in namespaces that have a binding to a set.
func (m *memory) boundTo(set string) touched {
	return m.those(func(in interest) (string, bool) { return fleet.EachCluster, in.refersTo(set) })
}

// those returns the Placements with such an interest, and what is touched for each. To ask evaluates expressions, which
// no pass must wait for, so it asks a copy.
func (m *memory) those(such func(interest) (string, bool)) touched {
	m.mu.RLock()
	placements := maps.Clone(m.placements)
	m.mu.RUnlock()
	all := touched{}
	for key, known := range placements {
		if what, is := such(known.interest); is {
			all[key] = what
		}
	}
	return all
}
