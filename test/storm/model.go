package storm

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
)

// works is how many works there may be.
const works = 16

// work is one ManifestWork of the model.
type work struct {
	name   string
	exists bool
	// things are its manifests, in order.
	things []*thing
	// policy decides with orphans, by the number of the object, what it owns.
	policy  workv1.DeletePropagationPolicyType
	orphans map[int]bool
	// rules tells that it has feedback and condition rules for its ConfigMaps.
	rules bool
	label string
	// ever are the objects that it had since it was made, which may keep it from going.
	ever map[int]*thing
}

// has reports whether the object is among the manifests.
func (w *work) has(t *thing) bool { return w.exists && slices.Contains(w.things, t) }

// owns reports whether the object is to go with the work.
func (w *work) owns(t *thing) bool {
	switch w.policy {
	case workv1.DeletePropagationPolicyTypeOrphan:
		return false
	case workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		return !w.orphans[t.id]
	case workv1.DeletePropagationPolicyTypeForeground:
	}
	return true
}

// identifier names an object in the options of a work.
func identifier(t *thing) workv1.ResourceIdentifier {
	at := t.kind.resource()
	return workv1.ResourceIdentifier{Group: at.Group, Resource: at.Resource, Namespace: t.namespace, Name: t.name}
}

// spec is the spec of the ManifestWork.
func (w *work) spec() workv1.ManifestWorkSpec {
	var spec workv1.ManifestWorkSpec
	spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: w.policy}
	if w.policy == workv1.DeletePropagationPolicyTypeSelectivelyOrphan {
		spec.DeleteOption.SelectivelyOrphan = &workv1.SelectivelyOrphan{}
	}
	for _, t := range w.things {
		raw, _ := json.Marshal(t.manifest(t.revision))
		spec.Workload.Manifests = append(spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		spec.ManifestConfigs = append(spec.ManifestConfigs, w.option(t))
		if rules := spec.DeleteOption.SelectivelyOrphan; rules != nil && w.orphans[t.id] {
			rules.OrphaningRules = append(rules.OrphaningRules, workv1.OrphaningRule(identifier(t)))
		}
	}
	return spec
}

// option holds what the work says about one object.
func (w *work) option(t *thing) workv1.ManifestConfigOption {
	option := workv1.ManifestConfigOption{
		ResourceIdentifier: identifier(t), UpdateStrategy: &workv1.UpdateStrategy{Type: t.strategy},
	}
	if t.strategy == workv1.UpdateStrategyTypeServerSideApply {
		apply := &workv1.ServerSideApplyConfig{Force: t.force, FieldManager: t.manager}
		if t.ignores {
			apply.IgnoreFields = []workv1.IgnoreField{{
				Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPointers: []string{"/data/s1"},
			}}
		}
		option.UpdateStrategy.ServerSideApply = apply
	}
	if w.rules && t.kind == configMap {
		option.FeedbackRules = []workv1.FeedbackRule{{
			Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: feedbackName, Path: ".data.s0"}},
		}}
		option.ConditionRules = []workv1.ConditionRule{{
			Type: workv1.CelConditionExpressionsType, Condition: ruleName,
			CelExpressions: []string{"object.data.s0.startsWith('r')"},
		}}
	}
	return option
}

// feedbackName and ruleName are what a work with rules wants to know of its ConfigMaps.
const feedbackName, ruleName = "s0", "Untouched"

// Model draws edits and keeps what must hold after them. It makes no request.
type Model struct {
	random *rand.Rand
	things []*thing
	works  []*work
	// gadgets reports whether the definition of gadgets is there.
	gadgets bool
	edits   int
}

// NewModel returns a model without works; the seed decides all that it draws.
func NewModel(seed uint64) *Model {
	m := &Model{random: rand.New(rand.NewPCG(seed, 4)), things: newThings()}
	for i := range works {
		m.works = append(m.works, &work{name: fmt.Sprintf("work-%d", i)})
	}
	return m
}

// action holds what an edit does.
type action string

const (
	putWorks     action = "put works"
	deleteWork   action = "delete work"
	forgetWork   action = "delete work and strip its finalizer"
	clearStatus  action = "clear the status of a work"
	stripWork    action = "strip the finalizer of a work"
	setValue     action = "set a value by hand"
	addValue     action = "add a value by hand"
	dropLabel    action = "drop a label by hand"
	deleteObject action = "delete an object by hand"
	putObject    action = "put an object by hand"
	stripOwners  action = "strip the owners of an object"
	hold         action = "put a foreign finalizer on an object"
	release      action = "take the foreign finalizer from an object"
	gadgetsOn    action = "install the definition of gadgets"
	gadgetsOff   action = "remove the definition of gadgets"
	wrongRecord  action = "change the spec of an applied record"
	emptyRecord  action = "empty the list of an applied record"
	stripRecord  action = "strip the finalizer of an applied record"
	deleteRecord action = "delete an applied record"
	vanishRecord action = "make an applied record vanish"
	// breakManifest puts a typing error into a manifest, loseNamespace deletes a namespace while the hub is away.
	breakManifest action = "break a manifest and mend it"
	loseNamespace action = "delete a namespace without the hub"
	killAgent     action = "kill the agent"
	cutLink       action = "cut the agent off from the hub"
	downHub       action = "take the API server of the hub down"
	downSpoke     action = "take the API server of the cluster down"
)

// Edit is one edit.
type Edit struct {
	// Number counts from one.
	Number int
	// Action says what is done.
	Action action
	// Work is the name of the work concerned, if any.
	Work string
	// Note says more, for a person.
	Note string

	thing *thing
	// things are all objects concerned, for their history.
	things []*thing
	// value holds what is set by hand.
	value string
	// pause is how long something is away.
	pause time.Duration
	// writes are works to write on the hub, in order.
	writes []writing
	// leaves are objects that leave the last work that has them, before which the agent must have done its part.
	leaves []leaving
	// stays are objects that leave a work while another one that owns them keeps them.
	stays []*thing
	// manifest is an object to put by hand.
	manifest map[string]any
}

// writing is one work as it is to be on the hub.
type writing struct {
	name, label string
	spec        workv1.ManifestWorkSpec
}

// leaving is an object that leaves the last work that has it.
type leaving struct {
	thing *thing
	work  string
	// goes tells that it must go then, because the work owns it; otherwise it must stay.
	goes bool
	// left tells that it left already, and must be going.
	left bool
	// owned tells, for one that stays, that it still has its owners before the edit.
	owned bool
	// held tells that a foreign finalizer may be on it.
	held bool
	// parent holds what it lives in, if that may go; works have the parent, or the object itself.
	parent *thing
	works  []string
}

// String tells the edit in one line.
func (e *Edit) String() string {
	var line strings.Builder
	fmt.Fprintf(&line, "%4d %s", e.Number, e.Action)
	if e.Work != "" {
		line.WriteString(" " + e.Work)
	}
	if e.thing != nil {
		line.WriteString(" " + e.thing.String())
	}
	if e.Note != "" {
		line.WriteString(": " + e.Note)
	}
	if e.pause > 0 {
		fmt.Fprintf(&line, " (%s)", e.pause)
	}
	return line.String()
}

// concerns reports whether the edit may have had to do with a text that names an object or a work.
func (e *Edit) concerns(text string) bool {
	named := func(name string) bool {
		return strings.Contains(text+" ", name+" ") || strings.Contains(text, name+":") || strings.Contains(text, name+"/")
	}
	if e.Work != "" && named(e.Work) {
		return true
	}
	return slices.ContainsFunc(e.things, func(t *thing) bool { return named(t.String()) })
}

// holders are the works that have an object.
func (m *Model) holders(t *thing) []*work {
	var all []*work
	for _, w := range m.works {
		if w.has(t) {
			all = append(all, w)
		}
	}
	return all
}

// written reports whether some work writes the object.
func (m *Model) written(t *thing) bool { return t.writes() && len(m.holders(t)) > 0 }

// children are the objects that exist only as long as the object does.
func (m *Model) children(t *thing) []*thing {
	var all []*thing
	for _, c := range m.things {
		if c.home == t || (t.kind == definition && c.kind == widget) {
			all = append(all, c)
		}
	}
	return all
}

// lost notes that an object went or may have gone: those in it that no work writes go with it.
func (m *Model) lost(t *thing, how presence) {
	for _, c := range m.children(t) {
		if !m.written(c) && c.presence != gone {
			c.presence, c.wentWith = c.deleted(how), t
		}
	}
}

// Doubt notes that timing decides whether an object stays.
func (m *Model) Doubt(t *thing) {
	t.presence = open
	m.lost(t, open)
}

// leave takes an object out of the manifests of a work and returns what must be waited for before.
func (m *Model) leave(w *work, t *thing) []leaving {
	last := len(m.holders(t)) == 1
	goes := w.owns(t) && t.writes()
	wait := m.leaving(t, w.name, goes)
	w.things = slices.DeleteFunc(slices.Clone(w.things), func(o *thing) bool { return o == t })
	delete(w.orphans, t.id)
	if goes && !last && !slices.ContainsFunc(m.holders(t), func(o *work) bool { return o.owns(t) }) {
		m.lost(t, open) // The others own nothing of it, so it is deleted, and made again for them.
	}
	if t.byHand || (!last && t.writes()) {
		return nil
	}
	t.released, t.wentWith = true, nil
	switch {
	case !t.writes():
		// It stays as it is, unless the work that leaves does not know yet that it may only read it.
	case goes:
		t.presence = gone
		m.lost(t, gone)
	case t.home != nil && !m.written(t.home) && t.home.presence == gone, t.kind == gadget && !m.gadgets:
		t.presence = gone
		return nil
	case t.kind == widget && !m.written(wait.parent):
		t.presence = open // its definition may be missing
		return nil
	default:
		t.presence = left
	}
	return []leaving{wait}
}

// leaving returns the condition to wait for before an object leaves a work.
func (m *Model) leaving(t *thing, name string, goes bool) leaving {
	l := leaving{thing: t, work: name, goes: goes, held: t.held, parent: t.home}
	for _, p := range m.things {
		if p.kind == definition && t.kind == widget {
			l.parent = p
		}
	}
	for _, o := range []*thing{t, l.parent} {
		if o == nil {
			continue
		}
		for _, w := range m.holders(o) {
			l.works = append(l.works, w.name)
		}
	}
	return l
}

// keepers returns those of the objects that other works than w own, too.
func (m *Model) keepers(w *work, all []*thing) []*thing {
	return slices.DeleteFunc(slices.Clone(all), func(t *thing) bool {
		return !t.writes() || !w.owns(t) || !slices.ContainsFunc(m.holders(t), func(o *work) bool {
			return o != w && o.owns(t)
		})
	})
}

// write returns a work as it is to be on the hub.
func (w *work) write() writing { return writing{name: w.name, label: w.label, spec: w.spec()} }

// reset forgets all that a work was.
func (w *work) reset() {
	*w = work{name: w.name, policy: workv1.DeletePropagationPolicyTypeForeground, orphans: map[int]bool{}, ever: w.ever}
}

// pick returns one of the elements for which ok holds.
func pick[T any](m *Model, all []T, ok func(T) bool) (T, bool) {
	var some []T
	for _, one := range all {
		if ok(one) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		var none T
		return none, false
	}
	return some[m.random.IntN(len(some))], true
}

// chance is true in so many of a hundred cases.
func (m *Model) chance(percent int) bool { return m.random.IntN(100) < percent }

// present are the works that exist.
func (m *Model) present() map[string]*work {
	all := map[string]*work{}
	for _, w := range m.works {
		if w.exists {
			all[w.name] = w
		}
	}
	return all
}

// Calm returns the edits that take all foreign finalizers away.
func (m *Model) Calm() []*Edit {
	var all []*Edit
	for _, t := range m.things {
		t.released = false
		if t.held {
			t.held = false
			all = append(all, m.number(&Edit{Action: release, thing: t}))
		}
	}
	return all
}

// End returns the edits that delete all works.
func (m *Model) End() []*Edit {
	var all []*Edit
	for _, name := range slices.Sorted(maps.Keys(m.present())) {
		all = append(all, m.number(m.remove(m.present()[name], deleteWork)))
	}
	return all
}

// number finishes an edit.
func (m *Model) number(e *Edit) *Edit {
	m.edits++
	e.Number = m.edits
	if e.thing != nil {
		e.things = append(e.things, e.thing)
	}
	return e
}
