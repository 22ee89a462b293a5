package work

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/kept"
)

const (
	// staleDelay is how long a pass waits for a cache that has not seen the last write yet.
	staleDelay = 20 * time.Millisecond
	// staleLimit is how long it waits at most; after that the cache is believed, and preconditions protect the writes.
	staleLimit = 2 * time.Second
	// vanishTime is how long after the creation of its AppliedManifestWork a work may vanish with its objects.
	vanishTime = time.Minute
)

// written is the last write of this process to one object, or a later one of which the hub said.
type written struct {
	uid     types.UID
	version string
	at      time.Time
	// kept is when the hub said that it has this version, though a cache did not show it; zero means never.
	kept time.Time
	// deleting reports that the object was deleted, gone that it went.
	deleting, gone bool
	// unseen reports that a pass went by an older copy from a cache, so that the event of the write must wake the work.
	unseen bool
}

// ahead reports whether a copy of the work is older than the last write: the hub would refuse a status for it. That may
// last as long as the work takes over a slow link; a hub that is older after that was restored.
func (w written) ahead(work *workv1.ManifestWork, now time.Time) bool {
	return w.unseenIn(work) && !now.After(w.aheadUntil())
}

// aheadUntil is until when the hub is believed to have what was written.
func (w written) aheadUntil() time.Time {
	if w.kept.After(w.at) {
		return w.kept.Add(publishTimeout)
	}
	return w.at.Add(publishTimeout)
}

// unseenIn reports whether a copy of the work is older than the last write.
func (w written) unseenIn(work *workv1.ManifestWork) bool {
	return w.uid == work.UID && watch.Older(work.ResourceVersion, w.version)
}

// lag reports whether a copy from a cache is older than the last write. uid is empty when the cache has none.
func (w written) lag(uid types.UID, version string, deleting bool, now time.Time) bool {
	if w.at.IsZero() || w.gone || now.Sub(w.at) > staleLimit {
		return false
	}
	if uid != w.uid {
		return uid == ""
	}
	return watch.Older(version, w.version) || (w.deleting && !deleting)
}

// left reports whether the object went by the last write although a cache still has it.
func (w written) left(uid types.UID, now time.Time) bool {
	return w.gone && w.uid == uid && now.Sub(w.at) <= staleLimit
}

// note holds what this process remembers of one owner besides its objects. It is a cache: without it a pass sends more
// requests.
type note struct {
	work, applied written
	// created is the AppliedManifestWork that was created for a work which never had a status, createdAt when. The API
	// server may delete a work in the moment in which it gets its finalizer; the objects created for it are then deleted
	// without a grace period.
	created   types.UID
	createdAt time.Time
	// manifests are those of the work with the UID and generation.
	uid        types.UID
	generation int64
	manifests  []manifest.Manifest
	// blocked is how many objects are overdue for deletion, and blockedText what the last Event said about them.
	blocked     int
	blockedText string
	// learned is the last status of the work with the UID learnedOf that has completions which the cache of the hub does
	// not show yet; nil when it shows all.
	learned   *workv1.ManifestWorkStatus
	learnedOf types.UID
	// sent holds what is known of the requests that the publishers make.
	sent [lanes]delivery
	// unsure is set when a status was sent without an answer: the hub may have it or not.
	unsure bool
	// unanswered is until when the hub is not asked which work it has, because it did not answer.
	unanswered delivery
	// feedback limits statuses that differ in values of feedback alone.
	feedback watch.Limiter
	// timed says whether it was told how long the present content of the work took to be applied.
	timed timed
	// unservedSince is since when kinds are missing, definitions how many of their definitions were seen by then.
	unservedSince time.Time
	definitions   int
}

// justCreated returns the AppliedManifestWork that was created a moment ago, for a work that never had a status; empty
// when there is none. A work that is missing later than that did not vanish while it got its finalizer: its hub may
// have been restored to an earlier state, so its objects have their grace period.
func (n note) justCreated(now time.Time) types.UID {
	if now.Sub(n.createdAt) > vanishTime {
		return ""
	}
	return n.created
}

// delivery holds what is known of the requests of one kind about a work. One is made at a time.
type delivery struct {
	// uid is the UID of the work that they are about.
	uid types.UID
	// underway is set while one is made for which no pass waits, or may not wait any more.
	underway bool
	// silentUntil is until when none is made, because the hub did not take one or all senders were busy, and failed how
	// the last one ended that no pass waited for; nil when it did not fail.
	silentUntil time.Time
	failed      error
}

// awaits returns until when no request is made about a work: one is made, whose end wakes the work, or the hub did
// not take it late, and how that failed. nil when one may be made.
func (d delivery) awaits(uid types.UID, now time.Time) (*time.Time, error) {
	switch {
	case d.uid != uid:
		return nil, nil
	case d.underway:
		return &time.Time{}, nil
	case now.Before(d.silentUntil):
		return &d.silentUntil, d.failed
	}
	return nil, nil
}

// lane is a kind of requests, which has a publisher of its own.
type lane int

const (
	statuses lane = iota
	finalizers
	lanes
)

// underway reports whether a request of a kind about a work is made.
func (n note) underway(of lane, uid types.UID) bool {
	return n.sent[of].underway && n.sent[of].uid == uid
}

// notes has the note of each owner.
type notes struct {
	kept.Map[watch.Owner, note]
}

// newNotes returns empty notes.
func newNotes() *notes { return &notes{} }

// of returns a copy of the note of an owner.
func (m *notes) of(o watch.Owner) note {
	known, _ := m.Get(o)
	return known
}

// change changes the note of an owner.
func (m *notes) change(o watch.Owner, change func(*note)) {
	m.Change(o, func(known note) (note, bool) {
		change(&known)
		return known, true
	})
}

// blocked counts the objects that are overdue for deletion.
func (m *notes) blocked() (sum int) {
	m.Each(func(_ watch.Owner, known note) { sum += known.blocked })
	return sum
}

// hubTimeout is how long one request to the hub may take before the pass goes on without its answer.
const hubTimeout = 3 * time.Second

// publishTimeout is how long a status may take on its way to the hub: over a link of 64 kbit/s, that of some hundred
// manifests.
const publishTimeout = time.Minute
