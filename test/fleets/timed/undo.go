package timed

import (
	"slices"
	"time"

	"github.com/spokelet/spokelet/internal/policies"
)

// failures are what contents do to clusters.
type failures struct {
	// broken are the contents with which agents are not well, stuck those that never become ready. some is the one
	// cluster to which they do that; empty for all.
	broken, stuck map[string]bool
	some          string
	// forAll are the contents that completed for all, or for some where failures are tolerated.
	forAll map[string]bool
	// troubled are the contents with which any cluster was not well for whatever reason.
	troubled map[string]bool
}

func (f *failures) breaks(s *site) bool {
	return f != nil && f.broken[s.has] && (f.some == "" || f.some == s.name)
}

func (f *failures) sticks(s *site) bool {
	return f != nil && f.stuck[s.has] && (f.some == "" || f.some == s.name)
}

// drawFailures draws what contents do, and what the policy says to that.
func (w *world) drawFailures() {
	f := &failures{
		broken: map[string]bool{}, stuck: map[string]bool{}, forAll: map[string]bool{},
		troubled: map[string]bool{},
	}
	for _, content := range []string{"2", "3", "4"} {
		f.broken[content], f.stuck[content] = w.Random.IntN(3) > 0, w.chance(5)
	}
	if w.chance(3) {
		f.some = w.sites[0].name
	}
	w.failures, w.managers = f, w.managers[:1] // Two would dispute about since when agents are not well.
	w.windows = w.windows[:min(w.Random.IntN(5)/4, len(w.windows))]
	w.rules = rules{
		exists: true,
		action: pick(w.Random, policies.ActionUndo, policies.ActionUndo, policies.ActionUndoAll, policies.ActionUndoAll, ""),
		after:  pick(w.Random, 0, 0, 90*time.Second, time.Hour),
	}
	w.undoes = w.rules.action == policies.ActionUndo
	w.changes++
}

// begin lets the first content, which is good, complete where it may: there is something to return to.
func (w *world) begin() {
	for range 2 + 2*len(w.sites) {
		for _, s := range w.sites {
			if s.addOn == nil {
				w.install(s)
			}
			w.heal(s)
		}
		if w.settle(); w.Violated() {
			return
		}
		w.pass(w.now.Add(6 * time.Minute))
	}
}

// undoers are people who undo and retry.
func (w *world) undoers() {
	name := ""
	for known, content := range w.told {
		if content == w.content {
			name = known
		}
	}
	without := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return one == name })
	}
	switch {
	case name == "":
	case w.chance(10):
		w.rules.exists, w.rules.undo, w.rules.retry = true, append(without(w.rules.undo), name), without(w.rules.retry)
	case w.chance(8):
		w.rules.exists, w.rules.undo, w.rules.retry = true, without(w.rules.undo), append(without(w.rules.retry), name)
		for _, s := range w.sites {
			delete(s.returned, w.content)
		}
	case w.chance(3) && !w.rules.paused:
		w.edit()
	default:
		return
	}
	w.changes++
}

// undoneBy reports whether all clusters return from a content by what a hub manager saw.
func (w *world) undoneBy(v *view, content string) (is bool) {
	policy := v.gate.Policy()
	if policy == nil {
		return false
	}
	for name, of := range w.told {
		if of != content || is {
			continue
		}
		byPolicy := slices.ContainsFunc(policy.Status.Undone, func(u policies.Undone) bool {
			return u.Content == name && u.By == policies.ByPolicy && u.Action == policies.ActionUndoAll
		})
		is = slices.Contains(v.rules.undo, name) || byPolicy && !slices.Contains(v.rules.retry, name)
	}
	return is
}

// retriedBy reports whether a person wants a content in spite of failures, by what a hub manager saw.
func (w *world) retriedBy(v *view, content string) bool {
	return slices.ContainsFunc(v.rules.retry, func(name string) bool { return w.told[name] == content })
}

// keepsOut reports whether the policy that a hub manager saw keeps content from clusters that returned from it. With
// strategy All one without onFailure does not, until its status says what was undone.
func (w *world) keepsOut(v *view) bool {
	return v.rules.exists && (w.planned || v.rules.action != "")
}

// judgeUndo judges a cluster that gets another content.
func (w *world) judgeUndo(m *manager, s *site, before, after string) {
	w.noteTroubles()
	v := m.sees
	if after == v.content {
		// Of one whose add-on is created again, or that was admitted and not written, the hub does not say what it had.
		w.Rule("undone stays", !w.undoneBy(v, after) || s.had[after] || s.again, "%s gets content %s, which was undone",
			s.name, after)
		w.Rule("undone stays", !s.returned[after] || w.undoneBy(v, before) || w.retriedBy(v, after) || !w.keepsOut(v),
			"%s gets content %s again, with which it failed", s.name, after)
		return
	}
	w.Rule("undo paused", !v.rules.paused, "%s returns from %s to %s while the add-on is paused", s.name, before, after)
	w.Rule("undo to", s.had[after] || w.failures.forAll[after],
		"%s returns from %q to %s, which completed neither there (%v) nor for all (%v)", s.name, before, after, s.had,
		w.failures.forAll)
	if before == v.content {
		w.Rule("undo once", !s.returned[before] || w.undoneBy(v, before), "%s returns from %s again", s.name, before)
		w.Rule("undo once", !w.retriedBy(v, before) || w.undoneBy(v, before), "%s returns from %s, which was retried",
			s.name, before)
		s.left[before] = true
		s.returned[before] = s.returned[before] || !w.undoneBy(v, before) // A person may take back what all return from.
	}
}

// noteTroubles notes the contents with which clusters are not well.
func (w *world) noteTroubles() {
	for _, s := range w.sites {
		recorded := s.addOn != nil && completed(s.addOn) == s.has // A cache that is behind may not show that it is ready.
		late := w.deadline > 0 && (!s.applied || !recorded) && !w.now.Before(s.began.Add(w.deadline))
		w.failures.troubled[s.has] = w.failures.troubled[s.has] || late || s.fell || s.again
	}
}

// noteLate notes a content for which a cluster timed out in the eyes of a hub manager whose cache is behind.
func (w *world) noteLate(m *manager) {
	for _, r := range m.said.Placements {
		if m.lagging > 0 && len(r.TimedOut) > 0 {
			w.failures.troubled[m.sees.content] = true
		}
	}
}

// judgePolicy judges what a hub manager is about to write into the status of the policy.
func (w *world) judgePolicy(m *manager) {
	w.noteTroubles()
	w.noteCompleted(m)
	for _, u := range m.said.Policy.Status.Undone {
		isNew := !slices.ContainsFunc(w.status.Undone, func(o policies.Undone) bool {
			return o.Content == u.Content && o.By == u.By && o.Action == u.Action
		})
		if !isNew || u.By != policies.ByPolicy {
			continue
		}
		content := w.told[u.Content]
		if content == "" {
			content = m.sees.content
		}
		w.Rule("undo once", !slices.Contains(m.sees.rules.retry, u.Content), "content %s is undone, and was retried", content)
		w.Rule("undo why", w.mayFail(content), "content %s is undone, and is good on all clusters", content)
		w.Rule("undo why", m.sees.rules.action != "" || u.Action == policies.ActionUndo,
			"content %s is undone, and the policy does not say so", content)
	}
}

// mayFail reports whether a content may have failed on any cluster.
func (w *world) mayFail(content string) bool {
	f := w.failures
	return f.broken[content] || f.stuck[content] || f.troubled[content]
}

// noteCompleted notes which name stands for which content, and what completed where not all clusters have to have it.
// A hub manager acts on what it wrote also while its cache is behind.
func (w *world) noteCompleted(m *manager) {
	if m.said.Policy == nil {
		return
	}
	for _, p := range m.said.Policy.Status.Placements {
		content, known := w.told[p.Content]
		w.Rule("undo names", !known || content == m.sees.content, "contents %s and %s have one name",
			content, m.sees.content)
		w.told[p.Content] = m.sees.content
		for _, c := range p.Completed {
			of := w.told[c.Content]
			some := slices.ContainsFunc(w.sites, func(s *site) bool { return s.had[of] })
			w.failures.forAll[of] = w.failures.forAll[of] || some
		}
	}
}

// judgeUndone keeps the books: who completed what.
func (w *world) judgeUndone(m *manager) {
	w.noteTroubles()
	w.noteCompleted(m)
	for content := range w.sites[0].had {
		if !slices.ContainsFunc(w.sites, func(s *site) bool { return s.selected && !s.had[content] }) {
			w.failures.forAll[content] = true
		}
	}
	// Where one cluster was not selected, its content may have completed for all others.
	for _, s := range w.sites {
		if !s.selected || s.addOn == nil {
			for _, other := range w.sites {
				for content := range other.had {
					w.failures.forAll[content] = true
				}
			}
		}
	}
}

// endUndo moves the clock on to when the hub manager looks again, or far ahead where it does not.
func (w *world) endUndo() {
	next := w.wakes()
	if next.IsZero() || !next.Before(w.horizon()) {
		w.now = w.horizon()
		return
	}
	w.now = next
}

// undone reports whether nothing is left to do, and judges what is there then.
func (w *world) undone() bool {
	if w.now.Before(w.horizon()) {
		return false
	}
	v := w.view()
	for _, s := range w.sites {
		if s.addOn == nil || !w.failures.breaks(s) || !s.applied || s.has != w.content || w.retriedBy(v, w.content) {
			continue
		}
		remembers := func(name string) bool {
			return slices.ContainsFunc(w.status.Undone, func(u policies.Undone) bool { return u.Content == name })
		}
		// It failed with the content, for longer than the policy asks for, and the policy knows one that completed before
		// and was not undone on this cluster itself.
		known := slices.ContainsFunc(w.status.Placements, func(p policies.PlacementContents) bool {
			return slices.ContainsFunc(p.Completed, func(c policies.CompletedContent) bool {
				of := w.told[c.Content]
				return of != "" && of != w.content && !w.undoneBy(v, of) && (!s.left[of] || !remembers(c.Content))
			})
		})
		w.Rule("undo ends", !known || !w.undoes || !s.down || s.again || w.manual,
			"%s keeps content %s, with which it failed, and %+v completed", s.name, s.has, w.status.Placements)
	}
	w.Rule("undo settles", true, "")
	return true
}
