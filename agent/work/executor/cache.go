package executor

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// cache holds the decisions of all works that have an executor. It does no I/O; its callbacks are called without the
// lock.
type cache struct {
	mu    sync.Mutex
	clock clock.PassiveClock
	works map[string]*entry
	// lastChange is the instant of the last change of RBAC, whomever it concerned.
	lastChange time.Time
	// wake is called for each work whose decisions were dropped.
	wake func(work string)
	// usedChanged is called when the first work comes or the last one goes, unused when an executor has no work left.
	usedChanged func()
	unused      func(ServiceAccount)
}

// entry is the part of the cache that belongs to one work.
type entry struct {
	who       ServiceAccount
	decisions map[Question]Decision
	// bound are the roles that manifests of the work bind: whether that is allowed depends on their rules.
	bound map[roleKey]bool
	// epoch counts the changes that dropped decisions; changed is the instant of the last change of RBAC among them.
	epoch   int
	changed time.Time
}

// begin adds a work before anything is asked about it and returns the epoch for put. Decisions about another executor
// are dropped.
func (c *cache) begin(work string, who ServiceAccount) int {
	c.mu.Lock()
	e, first := c.works[work], len(c.works) == 0
	var old ServiceAccount
	if e == nil || e.who != who {
		if e != nil {
			old = e.who
		}
		e = &entry{who: who, decisions: map[Question]Decision{}, bound: map[roleKey]bool{}, changed: c.lastChange}
		c.works[work] = e
	}
	gone := old != (ServiceAccount{}) && !c.uses(old)
	epoch := e.epoch
	c.mu.Unlock()
	if first {
		c.usedChanged()
	}
	if gone {
		c.unused(old)
	}
	return epoch
}

// forget removes a work.
func (c *cache) forget(work string) {
	c.mu.Lock()
	e := c.works[work]
	if e == nil {
		c.mu.Unlock()
		return
	}
	delete(c.works, work)
	last, gone := len(c.works) == 0, !c.uses(e.who)
	c.mu.Unlock()
	if last {
		c.usedChanged()
	}
	if gone {
		c.unused(e.who)
	}
}

// uses reports whether a work has the executor; the caller holds the lock.
func (c *cache) uses(who ServiceAccount) bool {
	for _, e := range c.works {
		if e.who == who {
			return true
		}
	}
	return false
}

// used reports whether any work has an executor.
func (c *cache) used() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.works) > 0
}

// get returns the cached decision of a question, false when there is none.
func (c *cache) get(work string, q Question) (Decision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.works[work]
	if e == nil {
		return Decision{}, false
	}
	d, known := e.decisions[q]
	return d, known
}

// bind records that a manifest of the work binds a role, before the escalation check.
func (c *cache) bind(work string, role roleKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.works[work]; e != nil {
		e.bound[role] = true
	}
}

// put caches a decision and returns it with the change of RBAC that it followed. A decision from before a change of
// RBAC, which is one with an older epoch, is not cached; the change has woken the work.
func (c *cache) put(work string, epoch int, q Question, d Decision) Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.works[work]
	if e == nil || e.epoch != epoch {
		return d
	}
	d.changed = e.changed
	e.decisions[q] = d
	return d
}

// keep drops all decisions of a work except those of its present manifests.
func (c *cache) keep(work string, questions map[Question]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.works[work]
	if e == nil {
		return
	}
	for q := range e.decisions {
		if !questions[q] {
			delete(e.decisions, q)
		}
	}
}

// invalidate drops the decisions that a change of RBAC may have made wrong, and wakes their works.
func (c *cache) invalidate(change rbacChange) {
	var woken []string
	c.mu.Lock()
	if !change.everyone {
		c.lastChange = c.clock.Now()
	}
	for work, e := range c.works {
		binds := !change.everyone && change.role != (roleKey{}) && e.bound[change.role]
		if !binds && !change.touches(e.who) {
			continue
		}
		for q := range e.decisions {
			if binds && q.GrantsPermissions() || change.concerns(e.who, q.Object.Namespace) {
				delete(e.decisions, q)
			}
		}
		e.epoch++
		if !change.everyone {
			e.changed = c.lastChange
		}
		woken = append(woken, work)
	}
	c.mu.Unlock()
	for _, work := range woken {
		c.wake(work)
	}
}
