package fleet

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Passes knows which Placements the placement controller of this process has decided since anything changed that they
// may depend on. What it has written is in PlacementDecisions; that it could not write, or has not begun, is nowhere
// else. The zero Passes is ready to use.
type Passes struct {
	mu sync.Mutex
	of map[types.NamespacedName]passes
}

// passes count what a Placement waits for, and how much of that was looked at by a pass that came to its end.
type passes struct{ asked, done uint64 }

// Ask notes that a Placement may have to be decided again. A nil Passes notes nothing.
func (p *Passes) Ask(key types.NamespacedName) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[key]
	of.asked++
	p.put(key, of)
}

// Begin returns what End has to know. It comes before the pass reads anything.
func (p *Passes) Begin(key types.NamespacedName) uint64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[key]
	of.asked++ // so that a Placement is undecided while it is being decided, and as long as that fails
	p.put(key, of)
	return of.asked
}

// End notes that a pass came to its end: all that follows from it is written.
func (p *Passes) End(key types.NamespacedName, begun uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[key]
	of.done = max(of.done, begun)
	p.put(key, of)
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

func (p *Passes) put(key types.NamespacedName, of passes) {
	if p.of == nil {
		p.of = map[types.NamespacedName]passes{}
	}
	p.of[key] = of
}

// Undecided returns why the PlacementDecisions of a Placement may not be those of the present clusters; nil when they
// are, or when nobody says.
func (p *Passes) Undecided(key types.NamespacedName) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.of[key]; of.done == 0 || of.done < of.asked {
		return fmt.Errorf("placement %s is being decided", key)
	}
	return nil
}
