package work

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
)

// holder is who cares for objects: a ManifestWork or, when applied is set, an AppliedManifestWork that has no work any
// more. The name is that of the object.
type holder struct {
	applied bool
	name    string
}

// watchKey is what one watch covers: a resource in a namespace, or of the whole cluster when that is empty.
type watchKey struct {
	resource  schema.GroupVersionResource
	namespace string
}

// sighting is what a watch said last about an object. It is never changed once it is in the ledger.
type sighting struct {
	version    string
	uid        types.UID
	generation int64
	meta       uint64
	gone       bool
	// unsure is set when the watch ended because the kind is not served: the object may be there or gone.
	unsure bool
}

// record is what a holder knows of an object from its own last request about it.
type record struct {
	// wish and owner are what was asked for when the object was last found or made so; a zero wish means never.
	wish  wish
	owner types.UID
	// failure says why the wish cannot be granted until the object or the wish changes.
	failure *failure
	// refused is since when the API server refuses the wish; zero when it does not.
	refused time.Time
	// unread is why the object could not be read, so that it is not known whether it exists; nil when it was read.
	unread error
	// exists, version, uid, generation and meta describe the object as it was read or written.
	exists     bool
	version    string
	uid        types.UID
	generation int64
	meta       uint64
	// content is the content that the API server made of the wish.
	content digest
	// sole tells that our AppliedManifestWork owns the object and no other one does.
	sole bool
	// reads, values, valuesErr and rulings are what was read for the hub: feedback, and answers to condition rules.
	reads     digest
	values    []workv1.FeedbackValue
	valuesErr string
	rulings   []feedback.RuleResult
	// cost is what the rules cost, in the units of CEL.
	cost int64
	// behind tells that the object was frozen while it did not say what the manifest says.
	behind bool
	// base is the sighting that was known before the request; whatever it says is older.
	base *sighting
	// checked is the instant of the request.
	checked time.Time
	// repairs says how often the object was put right lately, looks how often it was read because it had changed.
	repairs, looks allowance
	// deleting tells that the object was told to go; blockers are the finalizers that were seen to hold it.
	deleting bool
	blockers []string
	// since is when it was told to go or could first not be told, because is what else is known of why it is there.
	since   time.Time
	because string
	// look is when a deleted object is looked at again, should no watch speak.
	look time.Time
}

// news is what the ledger says about an object whose record may be out of date.
type news int

const (
	// newsNone means that nothing was heard since the record.
	newsNone news = iota
	// newsStatus means that the object moved on but neither its content nor its metadata did.
	newsStatus
	// newsChanged means that the object may be different.
	newsChanged
	// newsGone means that the object is gone.
	newsGone
)

// ledger is what this process remembers of the objects on the spoke: who holds what, what each holder last did, and
// what the watches said since. It is a pure cache: without it the agent does the same, with more requests. It does no
// I/O.
type ledger struct {
	mu      sync.Mutex
	objects map[identity]*entry
	holders map[holder]*holding
	// watched counts the claims on each watch; broken has those that the API server refuses.
	watched map[watchKey]int
	broken  map[watchKey]string
	// versions has the resourceVersion of the last list of each watch.
	versions map[watchKey]string
	// wake is called, without the lock, for each holder that should look again.
	wake func(holder)
	// changed is called, without the lock, when the set of wanted watches changed.
	changed func()
}

// entry is one object of the ledger. It has one record for each holder that claims it, usually one.
type entry struct {
	last    *sighting
	records []holderRecord
}

// holderRecord is the record of one holder, absent until its first request.
type holderRecord struct {
	holder holder
	record *record
}

// holding is what one holder claims.
type holding struct {
	objects map[identity]watchKey
	groups  []string
	// definitions counts the definitions of such kinds that were seen.
	definitions int
}

// newLedger returns an empty ledger.
func newLedger(wake func(holder), changed func()) *ledger {
	return &ledger{
		objects: map[identity]*entry{}, holders: map[holder]*holding{},
		watched: map[watchKey]int{}, broken: map[watchKey]string{}, versions: map[watchKey]string{},
		wake: wake, changed: changed,
	}
}

// claim says which objects the holder cares for from now on, each with the watch that covers it, and the API groups
// whose kinds it waits for. It must precede the requests about the objects, so that no event after them is missed.
func (l *ledger) claim(h holder, objects map[identity]watchKey, groups []string) {
	l.mu.Lock()
	before := l.holders[h]
	if before == nil {
		before = &holding{}
	}
	if maps.Equal(before.objects, objects) && slices.Equal(before.groups, groups) {
		l.mu.Unlock()
		return
	}
	moved := false
	for id, key := range objects {
		moved = l.hold(h, id, before.objects[id], key) || moved
	}
	for id, key := range before.objects {
		if _, kept := objects[id]; !kept {
			l.drop(h, id)
			moved = l.unwatch(key) || moved
		}
	}
	moved = l.countGroups(before.groups, groups) || moved
	l.holders[h] = &holding{objects: objects, groups: groups, definitions: before.definitions}
	if len(objects) == 0 && len(groups) == 0 {
		delete(l.holders, h)
	}
	l.mu.Unlock()
	if moved {
		l.changed()
	}
}

// hold adds one object to a holder, and moves it from the watch was to the watch key.
func (l *ledger) hold(h holder, id identity, was, key watchKey) bool {
	e := l.objects[id]
	if e == nil {
		e = &entry{}
		l.objects[id] = e
	}
	if e.find(h) == nil {
		e.records = append(e.records, holderRecord{holder: h})
	}
	if was == key {
		return false
	}
	l.watched[key]++
	moved := l.watched[key] == 1
	if was != (watchKey{}) {
		moved = l.unwatch(was) || moved
	}
	return moved
}

// drop takes one object from a holder.
func (l *ledger) drop(h holder, id identity) {
	e := l.objects[id]
	if e == nil {
		return
	}
	e.records = slices.DeleteFunc(e.records, func(r holderRecord) bool { return r.holder == h })
	if len(e.records) == 0 {
		delete(l.objects, id)
	}
}

// unwatch takes one claim from a watch and reports whether it was the last.
func (l *ledger) unwatch(key watchKey) bool {
	l.watched[key]--
	if l.watched[key] > 0 {
		return false
	}
	delete(l.watched, key)
	delete(l.broken, key)
	delete(l.versions, key)
	return true
}

// countGroups claims the watch of definitions when a holder starts to wait for kinds, and gives it back after.
func (l *ledger) countGroups(before, after []string) bool {
	key := definitionsKey()
	switch {
	case len(before) == 0 && len(after) > 0:
		l.watched[key]++
		return l.watched[key] == 1
	case len(before) > 0 && len(after) == 0:
		return l.unwatch(key)
	}
	return false
}

// definitionsKey is the watch of all CustomResourceDefinitions.
func definitionsKey() watchKey {
	return watchKey{resource: schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}}
}

// find returns the record of a holder, nil when it does not hold the object.
func (e *entry) find(h holder) *holderRecord {
	for i := range e.records {
		if e.records[i].holder == h {
			return &e.records[i]
		}
	}
	return nil
}

// look returns a copy of what the holder knows of an object, and what was heard since.
func (l *ledger) look(h holder, id identity) (record, news) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.objects[id]
	if e == nil {
		return record{}, newsNone
	}
	held := e.find(h)
	if held == nil || held.record == nil {
		return record{base: e.last}, newsNone
	}
	heard := newsOf(held.record, e.last)
	known := *held.record
	known.base = e.last
	return known, heard
}

// note stores what the holder learned by a request; base must be as look returned it before the request. When
// something newer was heard meanwhile the holder is woken.
func (l *ledger) note(h holder, id identity, r record) {
	l.mu.Lock()
	e := l.objects[id]
	var held *holderRecord
	if e != nil {
		held = e.find(h)
	}
	if held == nil {
		l.mu.Unlock()
		return
	}
	held.record = &r
	late := newsOf(held.record, e.last) != newsNone
	l.mu.Unlock()
	if late {
		l.wake(h)
	}
}

// see stores what a watch said about an object and wakes the holders to whom it is news. Objects that nobody holds are
// not remembered.
func (l *ledger) see(id identity, s sighting) {
	l.mu.Lock()
	waiting := l.waiting(id)
	e := l.objects[id]
	if e == nil || (e.last != nil && (olderVersion(s.version, e.last.version) || *e.last == s)) {
		l.mu.Unlock()
		l.wakeAll(waiting)
		return
	}
	e.last = &s
	for i := range e.records {
		held := &e.records[i]
		if held.record != nil && newsOf(held.record, e.last) != newsNone {
			waiting = append(waiting, held.holder)
		}
	}
	l.mu.Unlock()
	l.wakeAll(waiting)
}

// wakeAll wakes the holders.
func (l *ledger) wakeAll(holders []holder) {
	for _, h := range holders {
		l.wake(h)
	}
}

// waiting returns the holders that wait for a kind, when the object is the definition of one in their group.
func (l *ledger) waiting(id identity) []holder {
	key := definitionsKey()
	if id.Group != key.resource.Group || id.Resource != key.resource.Resource {
		return nil
	}
	_, group, _ := strings.Cut(id.Name, ".")
	var found []holder
	for h, held := range l.holders {
		if slices.Contains(held.groups, group) {
			held.definitions++
			found = append(found, h)
		}
	}
	return found
}
