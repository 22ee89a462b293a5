package fleet

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Passes knows which Placements the placement controller of this process has decided since anything changed that they
// may depend on. What it has written is in PlacementDecisions; that it could not write, or has not begun, is nowhere
// else. The zero Passes is ready to use, and a nil one notes nothing.
type Passes struct {
	// Alike reports whether a Placement decides the same about two copies of a cluster, which the placement controller
	// tells; nil means that only one version is one.
	Alike func(key types.NamespacedName, a, b *clusterv1.ManagedCluster) bool

	mu sync.Mutex
	of map[types.NamespacedName]passes
	// seen are the versions of the clusters that were looked at last.
	seen map[string]string
}

// passes count what a Placement waits for, and how much of that was looked at by a pass that came to its end.
type passes struct {
	asked, done uint64
	// since is when the first was asked that no pass has looked at, later the first of those since a pass began; zero when
	// there is none.
	since, later time.Time
	// touched holds what changed, and what was asked last for it, until a pass came to its end that has looked at that.
	touched map[string]uint64
	// unknown are the clusters that the last pass could not judge, and those that a pass cannot that has not come to its
	// end; next are the latter alone.
	unknown, next map[string]bool
}

// What may have changed for a Placement besides a cluster, which has a name.
const (
	// EachCluster stands for all of them.
	EachCluster = "*"
	// NoCluster stands for what changes nothing that is decided: a PlacementDecision was written.
	NoCluster = ""
)

// See notes that the Placements that a change of a cluster concerns were asked for; newer is nil for one that is gone.
// A cache has a version of a cluster before that is told to anybody.
func (p *Passes) See(cluster string, newer *clusterv1.ManagedCluster) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]string{}
	}
	if delete(p.seen, cluster); newer != nil {
		p.seen[cluster] = newer.ResourceVersion
	}
}

// Saw reports whether See was told of the version of a cluster, nil for one that does not exist, or of a later one: its
// agent may write the status all the time. It was where nothing is noted.
func (p *Passes) Saw(cluster *clusterv1.ManagedCluster) bool {
	if p == nil || cluster == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		return true
	}
	seen := p.seen[cluster.Name]
	order, err := resourceversion.CompareResourceVersion(seen, cluster.ResourceVersion)
	return seen == cluster.ResourceVersion || (err == nil && order > 0)
}

// DecidesAlike reports whether a Placement decides the same about two copies of a cluster, other clusters apart.
func (p *Passes) DecidesAlike(key types.NamespacedName, a, b *clusterv1.ManagedCluster) bool {
	return p != nil && p.Alike != nil && p.Alike(key, a, b)
}

// Ask notes that a Placement may have to be decided again, because a cluster changed, or EachCluster, or NoCluster.
func (p *Passes) Ask(key types.NamespacedName, cluster string, now time.Time) {
	p.change(key, func(of *passes) {
		of.asked++
		if cluster != NoCluster {
			if of.touched == nil {
				of.touched = map[string]uint64{}
			}
			of.touched[cluster] = of.asked
		}
		if of.since.IsZero() {
			of.since = now
		}
		if of.later.IsZero() {
			of.later = now
		}
	})
}

// Begin returns what End has to know. It comes before the pass reads anything.
func (p *Passes) Begin(key types.NamespacedName, now time.Time) (begun uint64) {
	p.change(key, func(of *passes) {
		of.asked++ // so that a Placement is undecided while it is being decided, and as long as that fails
		if of.since.IsZero() {
			of.since = now
		}
		begun, of.later, of.next = of.asked, time.Time{}, of.unknown
	})
	return begun
}

// End notes that a pass came to its end: all that follows from it is written.
func (p *Passes) End(key types.NamespacedName, begun uint64) {
	p.change(key, func(of *passes) {
		of.done, of.since, of.unknown = max(of.done, begun), of.later, of.next
		maps.DeleteFunc(of.touched, func(_ string, asked uint64) bool { return asked <= begun })
	})
}

// Doubt notes the clusters that a pass cannot judge and does not select. It comes before the pass writes anything; what
// an earlier pass could not judge stays unknown until this one has come to its end, for what it decides may be refused.
// The set must not be changed afterwards.
func (p *Passes) Doubt(key types.NamespacedName, unknown map[string]bool) {
	p.change(key, func(of *passes) {
		of.next = unknown
		if len(of.unknown) > 0 {
			all := maps.Clone(of.unknown)
			maps.Copy(all, unknown)
			unknown = all
		}
		of.unknown = unknown
	})
}

// Unknown returns the clusters of which the placement of this process cannot tell whether a Placement selects them. The
// set must not be changed.
func (p *Passes) Unknown(key types.NamespacedName) map[string]bool {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[key].unknown
}

// Forget forgets a Placement that is gone.
func (p *Passes) Forget(key types.NamespacedName) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, key)
}

func (p *Passes) change(key types.NamespacedName, change func(*passes)) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[key]
	change(&of)
	if p.of == nil {
		p.of = map[types.NamespacedName]passes{}
	}
	p.of[key] = of
}

// Undecided is why the PlacementDecisions of a Placement may not be those of the present clusters.
type Undecided struct {
	Why error
	// Since is when the first change came that no pass has looked at; zero where nobody has asked yet.
	Since time.Time
	// never reports whether this process has not decided at all.
	never   bool
	touched map[string]uint64
}

// Touches reports whether a cluster changed, or what concerns all of them, and no pass has looked at that. To a process
// that has not decided at all, anything may have changed before it began.
func (u Undecided) Touches(cluster string) bool {
	return u.never || u.touched[cluster] > 0 || u.touched[EachCluster] > 0
}

// Undecided returns why the PlacementDecisions of a Placement may not be those of the present clusters, and reports
// whether that is so; it is not where nothing is noted.
func (p *Passes) Undecided(key types.NamespacedName) (Undecided, bool) {
	return p.undecided(key, maps.Clone[map[string]uint64])
}

// UndecidedAbout is Undecided for who asks about one cluster. It costs the same however many changed.
func (p *Passes) UndecidedAbout(key types.NamespacedName, cluster string) (Undecided, bool) {
	return p.undecided(key, func(touched map[string]uint64) map[string]uint64 {
		return map[string]uint64{cluster: touched[cluster], EachCluster: touched[EachCluster]}
	})
}

func (p *Passes) undecided(key types.NamespacedName, of func(map[string]uint64) map[string]uint64) (Undecided, bool) {
	if p == nil {
		return Undecided{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.of[key]
	if known.done > 0 && known.done >= known.asked {
		return Undecided{}, false
	}
	return Undecided{
		Why: fmt.Errorf("placement %s is being decided", key), Since: known.since, never: known.done == 0,
		touched: of(known.touched),
	}, true
}
