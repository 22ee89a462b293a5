package storm

import (
	"slices"
	"strconv"
	"strings"
)

// token is a value that no manifest has.
func (m *Model) token() string { return "hand" + strconv.Itoa(m.edits+1) }

// valued reports whether the object has values that a hand may set.
func (t *thing) valued() bool {
	switch t.kind {
	case configMap, secret, role, clusterRole, roleBinding, deployment, widget, gadget:
		return true
	case serviceAccount, namespace, definition:
	}
	return false
}

// handSet sets a value that the manifest sets, too.
func (m *Model) handSet() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool {
		return t.valued() && !t.byHand && t.force && (len(m.holders(t)) > 0 || m.chance(3))
	})
	if !ok {
		return nil
	}
	e := &Edit{Action: setValue, thing: t, value: m.token(), Note: []string{"s0", "s1"}[m.random.IntN(2)]}
	if _, two := t.wanted(1)["s1"]; !two {
		e.Note = "s0"
	}
	return e
}

// handAdd adds a value that the manifest does not set.
func (m *Model) handAdd() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool {
		return t.extendable() && !t.byHand && (len(m.holders(t)) > 0 || m.chance(3))
	})
	if !ok {
		return nil
	}
	return &Edit{Action: addValue, thing: t, value: m.token()}
}

// extendable reports whether there is something that a hand may add.
func (t *thing) extendable() bool {
	switch t.kind {
	case configMap, secret, widget, gadget, deployment:
		return true
	case serviceAccount, role, roleBinding, clusterRole, namespace, definition:
	}
	return false
}

// handLabel takes a label away that the manifest sets.
func (m *Model) handLabel() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return !t.byHand && len(m.holders(t)) > 0 })
	if !ok {
		return nil
	}
	return &Edit{Action: dropLabel, thing: t}
}

// handDelete deletes an object.
func (m *Model) handDelete() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool {
		rare := t.kind == namespace || t.kind == definition
		return !t.byHand && (len(m.holders(t)) > 0 || m.chance(10)) && (!rare || m.chance(40))
	})
	if !ok {
		return nil
	}
	if !m.written(t) {
		t.presence = t.deleted(gone)
	}
	m.lost(t, gone)
	return &Edit{Action: deleteObject, thing: t}
}

// handForeign makes, changes or deletes an object that works only read.
func (m *Model) handForeign() *Edit {
	t, _ := pick(m, m.things, func(t *thing) bool { return t.byHand })
	if t.exists && m.chance(40) {
		t.exists = false
		return &Edit{Action: deleteObject, thing: t}
	}
	t.exists = true
	t.revision++
	return &Edit{
		Action: putObject, thing: t, manifest: t.manifest(t.revision), Note: "revision " + strconv.Itoa(t.revision),
	}
}

// handStrip takes the owner references from an object.
func (m *Model) handStrip() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return !t.byHand && m.written(t) })
	if !ok {
		return nil
	}
	return &Edit{Action: stripOwners, thing: t}
}

// holdUp puts the foreign finalizer on an object.
func (m *Model) holdUp() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool {
		return !t.byHand && t.kind != namespace && t.kind != definition && !t.held && m.written(t)
	})
	if !ok {
		return nil
	}
	t.held = true
	return &Edit{Action: hold, thing: t}
}

// letGo takes the foreign finalizer away.
func (m *Model) letGo() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return t.held })
	if !ok {
		return nil
	}
	t.held = false
	return &Edit{Action: release, thing: t}
}

// turnGadgets installs or removes the definition of gadgets.
func (m *Model) turnGadgets() *Edit {
	all := slices.DeleteFunc(slices.Clone(m.things), func(t *thing) bool { return t.kind != gadget })
	if !m.gadgets {
		if slices.ContainsFunc(all, func(t *thing) bool { return t.held }) {
			return nil // it may be kept from going
		}
		m.gadgets = true
		return &Edit{Action: gadgetsOn, things: all}
	}
	m.gadgets = false
	for _, t := range all {
		if !m.written(t) {
			t.presence = gone
		}
	}
	return &Edit{Action: gadgetsOff, things: all}
}

// endRecord deletes the applied record of a work, or makes it vanish.
func (m *Model) endRecord() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	e := &Edit{Action: deleteRecord, Work: w.name, things: slices.Clone(w.things)}
	if m.chance(30) {
		e.Action = vanishRecord
	}
	var names []string
	for _, t := range w.things {
		if !t.writes() && !t.byHand && t.presence == left {
			t.presence = open // it may still be owned
		}
		m.lost(t, open)
		names = append(names, t.String())
	}
	e.Note = strings.Join(names, " ")
	return e
}
