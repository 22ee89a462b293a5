package work

import (
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"
)

// grants is what this process remembers about the rights of executors: a pure cache, empty while no work has an
// executor. It does no I/O; its callbacks are called without the lock.
type grants struct {
	mu      sync.Mutex
	clock   clock.PassiveClock
	holders map[holder]*grant
	// recent is the instant of the last change of RBAC, whomever it concerned.
	recent time.Time
	// wake is called for each work whose executor must be asked about again.
	wake func(holder)
	// moved is called when the first work with an executor comes or the last one goes, dropped when an executor has no
	// work left.
	moved   func()
	dropped func(executor)
}

// grant is what is remembered for one work.
type grant struct {
	who        executor
	clearances map[question]clearance
	// binds are the roles that manifests of the work bind: whether that is allowed depends on what is in them.
	binds map[roleKey]bool
	// epoch counts the changes that took clearances away; changed is the instant of the last change of RBAC among them.
	epoch   int
	changed time.Time
}

// claim says that a work has an executor, before anything is asked about it, and returns the epoch for note. Verdicts
// about another executor are dropped.
func (g *grants) claim(h holder, who executor) int {
	g.mu.Lock()
	held, first := g.holders[h], len(g.holders) == 0
	var old executor
	if held == nil || held.who != who {
		if held != nil {
			old = held.who
		}
		held = &grant{who: who, clearances: map[question]clearance{}, binds: map[roleKey]bool{}, changed: g.recent}
		g.holders[h] = held
	}
	unused := old != (executor{}) && !g.uses(old)
	epoch := held.epoch
	g.mu.Unlock()
	if first {
		g.moved()
	}
	if unused {
		g.dropped(old)
	}
	return epoch
}

// release forgets a work.
func (g *grants) release(h holder) {
	g.mu.Lock()
	held := g.holders[h]
	if held == nil {
		g.mu.Unlock()
		return
	}
	delete(g.holders, h)
	last, unused := len(g.holders) == 0, !g.uses(held.who)
	g.mu.Unlock()
	if last {
		g.moved()
	}
	if unused {
		g.dropped(held.who)
	}
}

// uses tells, under the lock, whether a work has the executor.
func (g *grants) uses(who executor) bool {
	for _, held := range g.holders {
		if held.who == who {
			return true
		}
	}
	return false
}

// wanted reports whether any work has an executor.
func (g *grants) wanted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.holders) > 0
}

// look returns what is known about a manifest, false when nothing is.
func (g *grants) look(h holder, key question) (clearance, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.holders[h]
	if held == nil {
		return clearance{}, false
	}
	c, known := held.clearances[key]
	return c, known
}

// bind says that a manifest of the work binds a role, before it is asked whether it may.
func (g *grants) bind(h holder, role roleKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if held := g.holders[h]; held != nil {
		held.binds[role] = true
	}
}

// note remembers a clearance and returns it with the change of RBAC that it followed. When RBAC changed since claim
// returned the epoch, the clearance is not remembered; the work was woken then.
func (g *grants) note(h holder, epoch int, key question, c clearance) clearance {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.holders[h]
	if held == nil || held.epoch != epoch {
		return c
	}
	c.changed = held.changed
	held.clearances[key] = c
	return c
}

// keep forgets all clearances of a work but those of its present manifests.
func (g *grants) keep(h holder, keys map[question]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.holders[h]
	if held == nil {
		return
	}
	for key := range held.clearances {
		if !keys[key] {
			delete(held.clearances, key)
		}
	}
}

// hear takes away the clearances that a change of RBAC may have made wrong, and wakes their works.
func (g *grants) hear(r reach) {
	var woken []holder
	g.mu.Lock()
	if !r.everyone {
		g.recent = g.clock.Now()
	}
	for h, held := range g.holders {
		binds := !r.everyone && r.role != (roleKey{}) && held.binds[r.role]
		if !binds && !r.touches(held.who) {
			continue
		}
		for key := range held.clearances {
			if binds && key.id.Group == rbacv1.GroupName || r.concerns(held.who, key.id.Namespace) {
				delete(held.clearances, key)
			}
		}
		held.epoch++
		if !r.everyone {
			held.changed = g.recent
		}
		woken = append(woken, h)
	}
	g.mu.Unlock()
	for _, h := range woken {
		g.wake(h)
	}
}
