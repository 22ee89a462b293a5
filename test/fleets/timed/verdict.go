package timed

import (
	"slices"
	"strings"
	"time"
)

// verdict is what the judge says of a cluster that does not have the content.
type verdict struct {
	open bool
	// why are texts of which the sentence has to have all, and oneOf some of which it has to have one.
	why, oneOf []string
	// unusable reports whether a claim of the cluster keeps a window from being used, pause and approval whether a person
	// holds it.
	unusable, pause, approval, window bool
	// opens is when it may begin at first, zero where it may not as far as the judge looks; clock reports whether the
	// sentence is to say so.
	opens time.Time
	clock bool
	// edges is how often windows begin or end until it may begin.
	edges int
}

// verdict says whether the content may begin on a cluster at an instant, by what a hub manager saw.
func (w *world) verdict(v *view, on place, now time.Time) verdict {
	switch {
	case v.rules.paused:
		why := []string{"AddOnPolicy " + addOnName + " is paused"}
		if v.rules.reason != "" {
			why[0] += ": " + v.rules.reason
		}
		return verdict{why: why, pause: true}
	case v.rules.asks && !w.approves(v):
		return verdict{why: []string{"AddOnPolicy " + addOnName + " does not approve content "}, approval: true}
	}
	return w.byWindows(v, on, now)
}

// approves reports whether the names that are approved have that of the content.
func (w *world) approves(v *view) bool {
	for _, name := range v.rules.approved {
		if content, told := w.told[name]; told && content == v.content {
			return true
		}
	}
	return false
}

// byWindows says what the windows decide: it looks at each minute from now on.
func (w *world) byWindows(v *view, on place, now time.Time) verdict {
	var allow, deny [][]bool
	var denying []string
	found, at := verdict{}, w.era.number(now)
	for _, one := range v.windows {
		if !one.selects(on) {
			continue
		}
		zone := one.zone
		if one.byClaim {
			zone = on.claims[zoneClaim]
		}
		if zone == "" && !one.byClaim {
			zone = "UTC"
		}
		if one.broken || w.calendar.clock(w.era, zone) == nil || zone == "" {
			found.oneOf = append(found.oneOf, "MaintenanceWindow "+one.name+" cannot be used: ")
			found.unusable = found.unusable || one.byClaim
			continue
		}
		until := -1
		if !one.until.IsZero() {
			until = w.era.number(one.until)
		}
		covered := w.calendar.covered(w.era, zone, one.schedule, one.length, until)
		if !one.denies {
			allow = append(allow, covered)
			continue
		}
		if deny = append(deny, covered); covered[at] {
			denying = append(denying, one.name)
		}
	}
	if found.window = true; len(found.oneOf) > 0 {
		return found
	}
	is := func(n int) func([]bool) bool { return func(covered []bool) bool { return covered[n] } }
	mayIn := func(n int) bool {
		return !slices.ContainsFunc(deny, is(n)) && (len(allow) == 0 || slices.ContainsFunc(allow, is(n)))
	}
	if mayIn(at) {
		return verdict{open: true}
	}
	found.why, found.clock = []string{"no MaintenanceWindow allows it now"}, true
	if len(denying) > 0 {
		slices.Sort(denying)
		found.why[0] = "MaintenanceWindow " + strings.Join(denying, ", ") + " denies it"
	}
	turns := func(n int) func([]bool) bool { return func(covered []bool) bool { return covered[n] != covered[n-1] } }
	for n := at + 1; n < minutes; n++ {
		if slices.ContainsFunc(deny, turns(n)) || slices.ContainsFunc(allow, turns(n)) {
			found.edges++
		}
		if mayIn(n) {
			found.opens = w.era.instant(n)
			break
		}
	}
	return found
}

// horizon is as far as the judge looks.
func (w *world) horizon() time.Time { return w.era.instant(minutes) }
