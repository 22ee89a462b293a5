package work

// listed tells the ledger the complete state of a watch: what is claimed and not in present was gone at version.
func (l *ledger) listed(key watchKey, present map[identity]sighting, version string) {
	l.mu.Lock()
	delete(l.broken, key)
	if claimed := l.claimed(key); l.wentBack(key, version, claimed) {
		l.distrust(claimed)
	}
	l.versions[key] = version
	missing := map[identity]struct{}{}
	for _, id := range l.claimed(key) {
		if _, there := present[id]; !there {
			missing[id] = struct{}{}
		}
	}
	l.mu.Unlock()
	for id, s := range present {
		l.see(id, s)
	}
	for id := range missing {
		l.see(id, sighting{gone: true, version: version})
	}
}

// doubt tells the ledger that the API server does not serve what a watch is of. Its holders look for themselves: the
// objects may be gone with their kind, or be there in another version of it.
func (l *ledger) doubt(key watchKey) {
	l.mu.Lock()
	claimed := l.claimed(key)
	l.mu.Unlock()
	for _, id := range claimed {
		l.see(id, sighting{unsure: true})
	}
}

// claimed returns the objects that a watch is to cover. An object that several holders claim comes several times.
func (l *ledger) claimed(key watchKey) []identity {
	var claimed []identity
	for _, held := range l.holders {
		for id, at := range held.objects {
			if at == key {
				claimed = append(claimed, id)
			}
		}
	}
	return claimed
}

// wentBack reports whether a list is older than what the same watch showed before. A list is never older than what the
// same client saw, unless the store of the API server was put back to an earlier state.
func (l *ledger) wentBack(key watchKey, version string, claimed []identity) bool {
	if olderVersion(version, l.versions[key]) {
		return true
	}
	for _, id := range claimed {
		if last := l.objects[id].last; last != nil && olderVersion(version, last.version) {
			return true
		}
	}
	return false
}

// distrust forgets in which version objects were seen and written. Their versions are counted from an earlier state
// again, so they say nothing about which of two is newer.
func (l *ledger) distrust(claimed []identity) {
	for _, id := range claimed {
		e := l.objects[id]
		e.last = nil
		for i := range e.records {
			if known := e.records[i].record; known != nil {
				unknown := *known
				unknown.base, unknown.version, unknown.generation, unknown.sole = nil, "", 0, false
				e.records[i].record = &unknown
			}
		}
	}
}
