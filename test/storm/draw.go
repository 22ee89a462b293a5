package storm

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
)

// drawer tries to draw one kind of edit; nil means that there is nothing to do it to.
type drawer struct {
	weight int
	draw   func(*Model) *Edit
}

// drawers are all kinds of edits and how often each comes, in parts of all.
func drawers() []drawer {
	return []drawer{
		{140, (*Model).revise}, {60, (*Model).add}, {55, (*Model).drop}, {40, (*Model).move}, {40, (*Model).share},
		{60, (*Model).changeStrategy}, {55, (*Model).changePolicy}, {25, (*Model).changeRules}, {15, (*Model).relabelWork},
		{110, (*Model).create}, {30, (*Model).delete}, {8, (*Model).forget},
		{20, on(clearStatus)}, {6, on(stripWork)},
		{90, (*Model).handSet}, {50, (*Model).handAdd}, {35, (*Model).handLabel}, {70, (*Model).handDelete},
		{30, (*Model).handForeign}, {35, (*Model).handStrip}, {35, (*Model).holdUp}, {30, (*Model).letGo},
		{20, (*Model).turnGadgets}, {45, (*Model).breakManifest}, {3, (*Model).loseNamespace},
		{12, on(wrongRecord)}, {8, on(emptyRecord)}, {8, on(stripRecord)}, {10, (*Model).endRecord},
		{25, away(killAgent, 1500)}, {15, away(cutLink, 3000)}, {4, away(downHub, 3000)}, {4, away(downSpoke, 3000)},
	}
}

// Draw draws the next edit and takes it as done.
func (m *Model) Draw() *Edit {
	all := drawers()
	sum := 0
	for _, d := range all {
		sum += d.weight
	}
	for {
		at := m.random.IntN(sum)
		for _, d := range all {
			if at -= d.weight; at < 0 {
				if e := d.draw(m); e != nil {
					return m.number(e)
				}
				break
			}
		}
	}
}

// exists reports whether a work exists.
func exists(w *work) bool { return w.exists }

// on returns the drawer of an edit of any work, or its record, that changes nothing in the model.
func on(a action) func(*Model) *Edit {
	return func(m *Model) *Edit {
		w, ok := pick(m, m.works, exists)
		if !ok {
			return nil
		}
		e := &Edit{Action: a, Work: w.name}
		if a == wrongRecord {
			e.value = []string{"hubHash", "agentID", "manifestWorkName"}[m.random.IntN(3)]
			e.Note = e.value
		}
		return e
	}
}

// away returns the drawer of an edit that takes something away for up to so many milliseconds.
func away(a action, most int) func(*Model) *Edit {
	return func(m *Model) *Edit {
		return &Edit{Action: a, pause: time.Duration(m.random.IntN(most)) * time.Millisecond}
	}
}

// update returns the edit that writes all works which have an object.
func (m *Model) update(t *thing, note string) *Edit {
	e := &Edit{Action: putWorks, thing: t, Note: note}
	all := m.holders(t)
	m.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, w := range all {
		e.writes = append(e.writes, w.write())
		e.Note += " " + w.name
	}
	return e
}

// revise gives an object new content.
func (m *Model) revise() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return !t.byHand && len(m.holders(t)) > 0 })
	if !ok {
		return nil
	}
	t.revision++
	return m.update(t, "revision "+strconv.Itoa(t.revision)+" in")
}

// fits reports whether an object may be added to a work.
func (m *Model) fits(w *work, t *thing) bool {
	all := m.holders(t)
	switch {
	case w.has(t):
		return false
	case t.home != nil:
		return w.has(t.home) && len(all) == 0
	case t.kind == namespace, t.fixed && !t.byHand:
		return len(all) == 0
	case t.byHand:
		return true
	}
	return len(all) < 2
}

// put adds an object to a work.
func (m *Model) put(w *work, t *thing) {
	at := m.random.IntN(len(w.things) + 1)
	w.things = slices.Insert(slices.Clone(w.things), at, t)
	w.ever[t.id] = t
	if m.chance(30) {
		w.orphans[t.id] = true
	}
	if t.released && t.presence == gone {
		m.mayStay(t)
	}
}

// mayStay notes that an object that is to go may be taken over by another work first: what is in it stays then.
func (m *Model) mayStay(t *thing) {
	for _, c := range m.children(t) {
		if !m.written(c) && c.presence == gone && c.wentWith == t {
			c.presence = open
		}
	}
}

// add adds an object that no work has to a work.
func (m *Model) add() *Edit {
	w, ok := pick(m, m.works, func(w *work) bool { return w.exists && len(w.things) < 14 })
	if !ok {
		return nil
	}
	t, ok := pick(m, m.things, func(t *thing) bool { return len(m.holders(t)) == 0 && m.fits(w, t) })
	if !ok {
		return nil
	}
	m.put(w, t)
	return &Edit{Action: putWorks, Work: w.name, thing: t, Note: "with it", writes: []writing{w.write()}}
}

// share adds an object that another work has to a work.
func (m *Model) share() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	t, ok := pick(m, m.things, func(t *thing) bool { return len(m.holders(t)) == 1 && m.fits(w, t) })
	if !ok {
		return nil
	}
	m.put(w, t)
	return &Edit{Action: putWorks, Work: w.name, thing: t, Note: "with it, too", writes: []writing{w.write()}}
}

// takeOut takes an object out of a work, and out of it all that lives in it.
func (m *Model) takeOut(w *work, t *thing) (all []*thing, leaves []leaving) {
	if t.kind == namespace {
		for _, c := range m.children(t) {
			if w.has(c) {
				leaves, all = append(leaves, m.leave(w, c)...), append(all, c)
			}
		}
	}
	return append(all, t), append(leaves, m.leave(w, t)...)
}

// drop takes an object out of a work.
func (m *Model) drop() *Edit {
	w, ok := pick(m, m.works, func(w *work) bool { return w.exists && len(w.things) > 5 })
	if !ok {
		return nil
	}
	t := w.things[m.random.IntN(len(w.things))]
	e := &Edit{
		Action: putWorks, Work: w.name, thing: t, Note: "without it", stays: m.keepers(w, []*thing{t}),
	}
	e.things, e.leaves = m.takeOut(w, t)
	e.writes = []writing{w.write()}
	return e
}

// move moves an object from one work to another, in either order of writing.
func (m *Model) move() *Edit {
	from, ok := pick(m, m.works, func(w *work) bool { return w.exists && len(w.things) > 2 })
	if !ok {
		return nil
	}
	t := from.things[m.random.IntN(len(from.things))]
	to, ok := pick(m, m.works, func(w *work) bool { return w.exists && !w.has(t) && len(w.things) < 14 })
	if !ok || t.home != nil || t.kind == namespace || len(m.holders(t)) > 1 {
		return nil
	}
	m.put(to, t)
	m.leave(from, t)
	e := &Edit{Action: putWorks, thing: t, writes: []writing{from.write(), to.write()}}
	if m.chance(50) {
		slices.Reverse(e.writes)
	}
	e.Note = "moved from " + from.name + " to " + to.name + ", first " + e.writes[0].name
	return e
}

// changeStrategy gives an object another strategy.
func (m *Model) changeStrategy() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return !t.fixed && len(m.holders(t)) > 0 })
	if !ok {
		return nil
	}
	some := []workv1.UpdateStrategyType{
		workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeServerSideApply, workv1.UpdateStrategyTypeCreateOnly,
	}
	plain := t.home == nil && t.kind != namespace && t.kind != definition && t.kind != widget && t.kind != gadget
	if plain && m.chance(15) {
		some = append(some, workv1.UpdateStrategyTypeReadOnly)
	}
	next, _ := pick(m, some, func(s workv1.UpdateStrategyType) bool { return s != t.strategy })
	before := t.writes()
	t.strategy, t.keeps = next, map[string]keep{}
	e := m.update(t, string(next)+" in")
	if before && !t.writes() {
		t.presence, t.released = left, true
		wait := m.leaving(t, m.holders(t)[0].name, false)
		wait.owned = true
		e.leaves = []leaving{wait}
	}
	return e
}

// changePolicy gives a work another delete option.
func (m *Model) changePolicy() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	w.policy, _ = pick(m, []workv1.DeletePropagationPolicyType{
		workv1.DeletePropagationPolicyTypeForeground, workv1.DeletePropagationPolicyTypeOrphan,
		workv1.DeletePropagationPolicyTypeSelectivelyOrphan, workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
	}, func(p workv1.DeletePropagationPolicyType) bool { return p != w.policy })
	if m.chance(40) {
		t := w.things[m.random.IntN(len(w.things))]
		w.orphans[t.id] = !w.orphans[t.id]
	}
	e := &Edit{
		Action: putWorks, Work: w.name, Note: "delete option " + string(w.policy), writes: []writing{w.write()},
		things: slices.Clone(w.things),
	}
	e.leaves = m.going(w, func(*thing) bool { return true })
	return e
}

// going returns those of some objects that left their works and are to go, which must be going before the work gets
// another delete option: the agent deletes what left a work by the one that the work has when the agent looks at it.
func (m *Model) going(w *work, some func(*thing) bool) []leaving {
	var wait []leaving
	for _, t := range m.things {
		if some(t) && t.released && t.presence == gone && !t.byHand && !t.held && !m.written(t) {
			wait = append(wait, leaving{thing: t, work: w.name, left: true})
		}
	}
	return wait
}

// changeRules turns the rules of a work on or off.
func (m *Model) changeRules() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	w.rules = !w.rules
	return &Edit{
		Action: putWorks, Work: w.name, Note: fmt.Sprintf("rules %t", w.rules), writes: []writing{w.write()},
	}
}

// relabelWork gives a work another label.
func (m *Model) relabelWork() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	w.label = "l" + strconv.Itoa(m.edits)
	return &Edit{Action: putWorks, Work: w.name, Note: "label " + w.label, writes: []writing{w.write()}}
}

// blocked reports whether a foreign finalizer may keep an object from being deleted: its own, that of the namespace in
// which it lives, or that of an object which exists only as long as it does. A definition waits for its objects.
func (m *Model) blocked(t *thing) bool {
	return t.held || (t.home != nil && t.home.held) ||
		slices.ContainsFunc(m.children(t), func(c *thing) bool { return c.held })
}

// create makes a work that does not exist, perhaps one that was deleted a moment ago.
func (m *Model) create() *Edit {
	w, ok := pick(m, m.works, func(w *work) bool {
		if w.exists {
			return false
		}
		for _, t := range w.ever {
			if m.blocked(t) {
				return false
			}
		}
		return true
	})
	if !ok {
		return nil
	}
	former := w.ever
	w.ever = map[int]*thing{}
	w.reset()
	w.exists, w.rules = true, m.chance(30)
	for range 3 + m.random.IntN(6) {
		if t, ok := pick(m, m.things, func(t *thing) bool {
			return m.fits(w, t) && (len(m.holders(t)) == 0 || m.chance(5))
		}); ok {
			m.put(w, t)
		}
	}
	w.policy, _ = pick(m, []workv1.DeletePropagationPolicyType{
		workv1.DeletePropagationPolicyTypeForeground, workv1.DeletePropagationPolicyTypeForeground,
		workv1.DeletePropagationPolicyTypeSelectivelyOrphan, workv1.DeletePropagationPolicyTypeOrphan,
	}, func(workv1.DeletePropagationPolicyType) bool { return true })
	if len(w.things) == 0 {
		w.exists = false
		return nil
	}
	e := &Edit{Action: putWorks, Work: w.name, writes: []writing{w.write()}, things: slices.Clone(w.things)}
	for _, t := range w.things {
		e.Note += " " + t.String()
	}
	e.Note = "new with" + e.Note
	if w.policy == workv1.DeletePropagationPolicyTypeOrphan {
		// The agent may find it in the place of one of the same name that was stripped of its finalizer.
		e.leaves = m.going(w, func(t *thing) bool { return former[t.id] != nil })
	}
	return e
}

// remove deletes a work in one of two ways.
func (m *Model) remove(w *work, how action) *Edit {
	e := &Edit{
		Action: how, Work: w.name, things: slices.Clone(w.things), Note: string(w.policy), stays: m.keepers(w, w.things),
	}
	for len(w.things) > 0 {
		_, leaves := m.takeOut(w, w.things[0])
		e.leaves = append(e.leaves, leaves...)
	}
	w.reset()
	return e
}

// delete deletes a work.
func (m *Model) delete() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	return m.remove(w, deleteWork)
}

// forget deletes a work and takes away the finalizer by which it waits for its objects.
func (m *Model) forget() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	return m.remove(w, forgetWork)
}
