package timed

import (
	"maps"
	"slices"

	"github.com/spokelet/spokelet/internal/policies"
)

// end lets people release what they hold and all clusters be well, and expects every cluster to have the content that
// may have it: nobody does anything any more but the clock.
func (w *world) end() {
	w.calm = true
	w.undoes = w.undoes && w.rules.exists && w.rules.action == policies.ActionUndo
	w.rules.paused, w.rules.asks = false, w.rules.asks && w.chance(2) && w.failures == nil
	w.managers = w.managers[:1]
	w.managers[0].lagging = 0
	w.changes++
	for turn := range 4000 {
		before := w.changes
		for _, s := range w.sites {
			if s.selected && s.addOn == nil {
				w.install(s)
			}
			w.heal(s)
		}
		if w.settle(); w.Violated() || w.failures == nil && w.ended() {
			return
		}
		if w.failures != nil {
			if w.changes != before {
				continue
			}
			if w.endUndo(); w.Violated() || w.undone() {
				return
			}
			continue
		}
		if w.rules.asks && !w.approves(w.view()) {
			w.approve()
			continue
		}
		next := w.wakes()
		if slices.ContainsFunc(w.sites, func(s *site) bool { return s.addOn != nil && s.has != "" && !s.applied }) {
			continue
		}
		if next.IsZero() || !next.Before(w.horizon()) {
			w.Rule("silence", w.blocked(), "nothing moves and nobody wakes, and %v wait", w.waiting())
			return
		}
		if turn > 50 && w.blocked() {
			return
		}
		w.now = next
	}
	w.Rule("silence", w.blocked() || w.now.After(w.era.from.Add(lasts)), "%v still wait at %s", w.waiting(), w.now)
}

// waiting are the clusters that do not have the content.
func (w *world) waiting() []string {
	late := map[string]string{}
	for _, s := range w.sites {
		if s.addOn != nil && desired(s.addOn) != w.content {
			late[s.name] = sentence(s.addOn)
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(late)) {
		all = append(all, name+" ("+late[name]+")")
	}
	return all
}

func (w *world) ended() bool { return len(w.waiting()) == 0 }

// blocked reports whether the windows of a cluster never let it begin, so that others may wait for it.
func (w *world) blocked() bool {
	return slices.ContainsFunc(w.sites, func(s *site) bool {
		if s.addOn == nil || desired(s.addOn) == w.content {
			return false
		}
		found := w.verdict(w.view(), s.place, w.now)
		return !found.open && found.opens.IsZero()
	})
}
