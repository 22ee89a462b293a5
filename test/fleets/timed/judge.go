package timed

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/hub/rollout/planner"
)

// farthest is after how many edges of windows a sentence need not name the instant.
const farthest = 100

// judgeBegin judges a cluster that begins to change to a content, by what the hub manager that wrote it saw.
func (w *world) judgeBegin(m *manager, s *site, content string) {
	v := m.sees
	w.Rule("finished", content == v.content, "%s gets content %q, and %q is wanted", s.name, content, v.content)
	found := w.verdict(v, v.places[s.name], w.now)
	w.Rule("pause", !found.pause, "%s begins to change while the add-on is paused", s.name)
	w.Rule("approval", !found.approval, "%s begins to change to content %s, and approved is %q of %v", s.name, content,
		v.rules.approved, w.told)
	w.Rule("window", !found.window, "%s begins to change at %s, though %q%q", s.name, w.now, found.why, found.oneOf)
	if s.canary || s.again || !w.planned {
		return
	}
	for _, first := range w.sites {
		addOn := v.addOns[first.name]
		if !first.canary || addOn == nil || first.again || !first.selected {
			continue
		}
		waits := desired(addOn) != v.content && !w.verdict(v, v.places[first.name], w.now).unusable
		w.Rule("groups", !waits, "%s begins to change before %s of the mandatory group", s.name, first.name)
	}
}

// judge judges what a hub manager made of all that there is.
func (w *world) judge(m *manager) {
	if w.failures != nil {
		w.judgeUndone(m)
		return
	}
	for _, s := range w.sites {
		if s.addOn == nil {
			continue
		}
		if desired(s.addOn) != w.content {
			w.judgeWait(m, s)
		}
		if s.has != "" && s.applied {
			w.judgeFinished(s)
		}
	}
	w.judgeNumbers(m)
	if w.Violated() {
		return
	}
	if w.chance(3) && !w.manual {
		w.judgeRestart(m)
	}
	for _, other := range w.managers {
		if other != m && other.sees == m.sees && !w.remembers() {
			w.Rule("overlap", w.same(m.said, other.said), "two hub managers decide %+v and %+v", m.said, other.said)
		}
	}
}

// judgeWait judges what a cluster says that does not have the content.
func (w *world) judgeWait(m *manager, s *site) {
	found, said := w.verdict(m.sees, s.place, w.now), sentence(s.addOn)
	w.learn(said)
	if found.open {
		speaks := strings.Contains(said, "AddOnPolicy") || strings.Contains(said, "MaintenanceWindow")
		w.Rule("silence", w.planned && said != "", "%s may begin and does not: %q", s.name, said)
		w.Rule("sentence", !speaks, "%s may begin, and says %q", s.name, said)
		return
	}
	right := len(found.oneOf) == 0
	for _, text := range found.oneOf {
		right = right || strings.Contains(said, text)
	}
	for _, text := range found.why {
		right = right && strings.Contains(said, text)
	}
	w.Rule("sentence", right, "%s waits because of %q%q, and says %q", s.name, found.why, found.oneOf, said)
	if found.clock {
		w.judgeInstant(m, s, found, said)
	}
}

// learn remembers the content for which the hub manager told a name.
func (w *world) learn(said string) {
	_, name, told := strings.Cut(said, "does not approve content ")
	if !told {
		return
	}
	content, known := w.told[name]
	w.Rule("approval", !known || content == w.content, "contents %s and %s have one name, %s", content, w.content, name)
	w.told[name] = w.content
}

// judgeInstant judges the instant at which a cluster may begin, and that the hub manager looks then.
func (w *world) judgeInstant(m *manager, s *site, found verdict, said string) {
	_, text, names := strings.Cut(said, "it may begin at ")
	at, err := time.Parse(time.RFC3339, text)
	w.Rule("silence", !m.wake.IsZero() && !m.wake.After(found.opens) || found.opens.IsZero(),
		"%s may begin at %s, and the hub manager wakes at %s", s.name, found.opens, m.wake)
	if !names {
		far := found.opens.IsZero() || found.edges() > farthest
		w.Rule("instant", far && strings.Contains(said, "not known when it may begin"),
			"%s may begin at %s, and says %q", s.name, found.opens, said)
		return
	}
	right := err == nil && (at.Equal(found.opens) || found.opens.IsZero() && !at.Before(w.horizon()))
	w.Rule("instant", right, "%s may begin at %s, and says %q", s.name, found.opens, said)
}

// judgeFinished judges that what a cluster has begun is recorded as finished, whatever holds the next content.
func (w *world) judgeFinished(s *site) {
	c := meta.FindStatusCondition(s.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	last := completed(s.addOn)
	w.Rule("finished", c != nil && c.Reason == addonv1beta1.ProgressingReasonCompleted && last == s.has,
		"%s has content %s, and says %+v and %q", s.name, s.has, c, last)
}

// judgeNumbers judges who counts as failed and as late.
func (w *world) judgeNumbers(m *manager) {
	if w.manual {
		return
	}
	r, begun := m.said.Placements[0], 0
	for _, s := range w.sites {
		if !s.selected || s.again {
			begun++ // What the hub manager remembers of the one before counts.
			continue
		}
		_, late := slices.BinarySearch(r.TimedOut, s.name)
		has := s.addOn != nil && desired(s.addOn) == w.content
		if !has {
			w.Rule("patience", !late, "%s waits, and counts as timed out", s.name)
			continue
		}
		begun++
		s.late = s.late || late
		over := w.deadline > 0 && !w.now.Before(s.began.Add(w.deadline))
		w.Rule("deadline", over || !late, "%s began at %s, and counts as timed out at %s", s.name, s.began, w.now)
		// One that returns to what it had completed before has completed it.
		w.Rule("deadline", !over || late || s.once || completed(s.addOn) == w.content,
			"%s began at %s, and is not late at %s", s.name, s.began, w.now)
	}
	w.Rule("patience", r.Counts.Failed <= begun && r.Counts.TimedOut <= begun,
		"%d clusters have begun, and the counts are %+v", begun, r.Counts)
}

// remembers reports whether hub managers may remember what is not on the hub.
func (w *world) remembers() bool {
	return slices.ContainsFunc(w.sites, func(s *site) bool { return s.again || s.fell || s.late && s.once })
}

// judgeRestart judges that a hub manager that is started now decides the same.
func (w *world) judgeRestart(m *manager) {
	if w.remembers() {
		return
	}
	fresh := w.start()
	fresh.sees = m.sees
	said := w.plan(fresh)
	w.Rule("restart", w.same(m.said, said), "a hub manager that is started decides %+v and not %+v", said, m.said)
}

// same reports whether two plans are the same. Of a window without an end it depends on the instant when it is looked
// at again, far away.
func (w *world) same(a, b rollout.Rehearsed) bool {
	far := func(at time.Time) bool { return at.IsZero() || at.Sub(w.now) > after }
	return (a.Wake.Equal(b.Wake) || far(a.Wake) && far(b.Wake)) && reflect.DeepEqual(a.Policy, b.Policy) &&
		slices.EqualFunc(a.Placements, b.Placements, func(a, b planner.Result) bool {
			return slices.Equal(a.Admit, b.Admit) && slices.Equal(a.Hold, b.Hold) && slices.Equal(a.TimedOut, b.TimedOut) &&
				a.Counts == b.Counts && a.Stopped == b.Stopped && slices.Equal(a.Remarks, b.Remarks)
		})
}
