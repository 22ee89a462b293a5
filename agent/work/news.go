package work

import (
	"maps"
	"time"
)

// newsOf tells what a sighting adds to a record. A move of the object that touched neither content nor metadata, and
// that nobody reads feedback from, is put into the record at once and is no news.
func newsOf(r *record, s *sighting) news {
	if s == nil || s == r.base {
		return newsNone
	}
	if s.unsure {
		return newsChanged
	}
	if s.gone {
		if r.exists && !olderVersion(s.version, r.version) {
			return newsGone
		}
		return newsNone
	}
	if !r.exists {
		return newsChanged
	}
	if s.version == r.version || olderVersion(s.version, r.version) {
		return newsNone
	}
	if r.failure != nil || !statusOnly(r, s) {
		return newsChanged
	}
	if r.reads != (digest{}) {
		return newsStatus
	}
	r.version = s.version
	return newsNone
}

// statusOnly reports whether an object moved from the record to the sighting without its content or metadata changing:
// the API server counts generations for its kind and counted none, and the metadata is the same.
func statusOnly(r *record, s *sighting) bool {
	return s.uid == r.uid && s.generation > 0 && s.generation == r.generation && s.meta == r.meta
}

// definitions counts the definitions of awaited kinds that the holder was told of.
func (l *ledger) definitions(h holder) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.holders[h]; held != nil {
		return held.definitions
	}
	return 0
}

// watches returns the watches that are wanted.
func (l *ledger) watches() map[watchKey]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.watched)
}

// refuse marks a watch that the API server does not allow, and wakes its holders once so that they look for
// themselves. It reports whether that is new.
func (l *ledger) refuse(key watchKey, why string) bool {
	l.mu.Lock()
	if have, known := l.broken[key]; l.watched[key] == 0 || (known && have == why) {
		l.mu.Unlock()
		return false
	}
	l.broken[key] = why
	var holders []holder
	for h, held := range l.holders {
		for _, at := range held.objects {
			if at == key {
				holders = append(holders, h)
				break
			}
		}
	}
	l.mu.Unlock()
	l.wakeAll(holders)
	return true
}

// unwatched reports whether the object is one that no watch will speak of.
func (l *ledger) unwatched(h holder, id identity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.holders[h]
	if held == nil {
		return true
	}
	key, claimed := held.objects[id]
	_, refused := l.broken[key]
	return !claimed || refused
}

const (
	// repairBurst is how often an object is put right, or read because it changed, without a pause.
	repairBurst = 10
	// repairPause is how long it takes to be allowed once more after that. So two writers that disagree for good cost
	// one write per pause, an object that somebody writes all the time one read, and a single disturbance is repaired
	// immediately.
	repairPause = 15 * time.Second
)

// allowance is a bucket of repairs or looks: it is full at first and refills with time.
type allowance struct {
	spent float64
	at    time.Time
}

// refilled returns the allowance as it is at now.
func (a allowance) refilled(now time.Time) allowance {
	if !a.at.IsZero() {
		a.spent = max(0, a.spent-float64(now.Sub(a.at))/float64(repairPause))
	}
	a.at = now
	return a
}

// spend takes one, or returns false and the instant at which there is one again.
func (a allowance) spend(now time.Time) (allowance, time.Time, bool) {
	a = a.refilled(now)
	if a.spent > repairBurst-1 {
		missing := a.spent - (repairBurst - 1)
		return a, now.Add(time.Duration(missing * float64(repairPause))), false
	}
	a.spent++
	return a, time.Time{}, true
}
