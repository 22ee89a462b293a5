package windows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Kind says what a window does.
type Kind string

// The kinds.
const (
	// Allow lets changes begin in the window.
	Allow Kind = "Allow"
	// Deny lets none begin in the window, whatever others allow.
	Deny Kind = "Deny"
)

const (
	// LongestDuration is how long an occurrence may be.
	LongestDuration = 366 * 24 * time.Hour
	// horizon is how far the next occurrence is looked for: some days of the week come on a 29 February once in 40 years.
	horizon = 41 * 366
	// longest is how many occurrences that follow each other without a gap are looked at; after them the caller looks
	// again.
	longest = 1000
	// farthest is how many changes ahead an opening is looked for.
	farthest = 100
	// maxQuoted is how many bytes of a schedule an error quotes.
	maxQuoted = 60
)

// Spec describes a window.
type Spec struct {
	Name string
	Kind Kind
	// Schedule has the five fields of cron, or a name such as @daily; see the cron jobs of Kubernetes.
	Schedule string
	// Duration is how long an occurrence is, from a minute to LongestDuration.
	Duration time.Duration
	// Location is the time zone of the schedule; nil means UTC.
	Location *time.Location
	// Until is when the window ends for good: no occurrence begins then or later; zero means never.
	Until time.Time
}

// Window is a window that can be followed. Use Parse.
type Window struct {
	spec   Spec
	fields *cron.SpecSchedule
}

// Parse reads a window. An error says which part cannot be used, and what is allowed there.
func Parse(spec Spec) (Window, error) {
	if spec.Location == nil {
		spec.Location = time.UTC
	}
	quoted := message.Quote(message.Cut(spec.Schedule, maxQuoted))
	if strings.Contains(spec.Schedule, "TZ=") {
		return Window{}, fmt.Errorf("schedule %s: the time zone has a field of its own", quoted)
	}
	parsed, err := cron.ParseStandard(spec.Schedule)
	if err != nil {
		return Window{}, fmt.Errorf("schedule %s: %w", quoted, err)
	}
	fields, is := parsed.(*cron.SpecSchedule)
	switch {
	case !is:
		return Window{}, fmt.Errorf("schedule %s: an interval has no beginning on the clock; use five fields", quoted)
	case spec.Kind != Allow && spec.Kind != Deny:
		return Window{}, fmt.Errorf("kind %s: allowed are %s and %s", message.Quote(string(spec.Kind)), Allow, Deny)
	case spec.Duration < time.Minute || spec.Duration > LongestDuration:
		return Window{}, fmt.Errorf("duration %s: allowed are 1m to %s", spec.Duration, LongestDuration)
	}
	return Window{spec: spec, fields: fields}, nil
}

// State is a window at an instant.
type State struct {
	Active bool
	// Changes is when that is over, or is to be looked at again; zero means never.
	Changes time.Time
	// Endless is set where it lasts for more occurrences than are looked at.
	Endless bool
}

// At returns the state of the window at an instant.
func (w Window) At(now time.Time) State {
	var end time.Time // of the occurrences so far, when they have begun
	looked := 0
	for start := range w.starts(now.Add(-w.spec.Duration)) {
		switch {
		case start.After(now) && end.IsZero():
			return State{Changes: start}
		case start.After(end) && !end.IsZero(), looked == longest:
			return State{Active: true, Changes: end, Endless: !start.After(end)}
		}
		end, looked = start.Add(w.spec.Duration), looked+1
	}
	return State{Active: !end.IsZero(), Changes: end}
}

// Next returns when the next occurrence begins after an instant; zero for never.
func (w Window) Next(now time.Time) time.Time {
	for start := range w.starts(now) {
		return start
	}
	return time.Time{}
}

// Verdict says whether changes may begin.
type Verdict struct {
	Open bool
	// By names the windows that decide: those that deny, else those that allow; empty when no window does.
	By []string
	// Changes is when that is over, or is to be looked at again; zero means never.
	Changes time.Time
	// Opens is when changes may begin next; zero when they may now, or when that is not known.
	Opens time.Time
}

// Judge decides by all windows that concern a cluster.
func Judge(all []Window, now time.Time) Verdict {
	verdict, next := judge(all, now)
	for looks := 0; !verdict.Open && !next.IsZero() && looks < farthest; looks++ {
		var then Verdict
		at := next
		if then, next = judge(all, at); then.Open {
			verdict.Opens = at
			break
		}
	}
	return verdict
}

// judge decides for an instant, without when changes may begin next, and returns before which instant they surely may
// not; zero where they never may.
func judge(all []Window, now time.Time) (v Verdict, next time.Time) {
	var denying, allowing []string
	var denied, allowed time.Time // until when changes are denied, and from when on they are allowed again
	allows, forEver := false, false
	for _, w := range all {
		state := w.At(now)
		v.Changes = reconcile.Earliest(v.Changes, state.Changes)
		switch allow := w.spec.Kind == Allow; {
		case allow && state.Active:
			allows, allowing = true, append(allowing, w.spec.Name)
		case allow:
			allows, allowed = true, reconcile.Earliest(allowed, state.Changes)
		case state.Active:
			denying, forEver = append(denying, w.spec.Name), forEver || state.Changes.IsZero() || state.Endless
			if state.Changes.After(denied) {
				denied = state.Changes
			}
		}
	}
	v.Open = len(denying) == 0 && (len(allowing) > 0 || !allows)
	if v.By = denying; len(denying) == 0 {
		v.By = allowing
	}
	slices.Sort(v.By)
	switch {
	case v.Open, forEver:
		return v, time.Time{}
	case len(denying) > 0:
		return v, denied
	}
	return v, allowed
}
