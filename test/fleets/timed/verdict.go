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
	// edges returns how often windows begin or end until it may begin.
	edges func() int
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

// byWindows says what the windows decide.
func (w *world) byWindows(v *view, on place, now time.Time) verdict {
	of, at := w.reach(v, on), w.era.number(now)
	found := verdict{window: true, oneOf: of.unusable, unusable: of.byClaim}
	if len(of.unusable) > 0 {
		return found
	}
	if of.opens(at) {
		return verdict{open: true}
	}
	found.why, found.clock = []string{"no MaintenanceWindow allows it now"}, true
	if denying := of.denying(at); len(denying) > 0 {
		found.why[0] = "MaintenanceWindow " + strings.Join(denying, ", ") + " denies it"
	}
	if next := of.next(at); next < minutes {
		found.opens = w.era.instant(next)
	}
	found.edges = func() int { return of.edges(at) }
	return found
}

// reach are the minutes that the windows of a cluster cover.
type reach struct {
	allow, deny [][]bool
	// names are those of the windows that deny, in their order; unusable says of windows that they cannot be used, and
	// byClaim whether the cluster is to name the time zone of any of them.
	names    []string
	unusable []string
	byClaim  bool
	// from and to are minutes between which it is known that nothing may begin.
	from, to int
}

// place identifies what windows know of a cluster at a time.
type placed struct {
	windows    int
	kind, zone string
	claims     bool
}

// reach returns the minutes that windows cover on a cluster.
func (w *world) reach(v *view, on place) *reach {
	zone, claims := on.claims[zoneClaim]
	key := placed{v.rewrites, on.labels[kindLabel], zone, claims}
	if known := w.reached[key]; known != nil {
		return known
	}
	of := &reach{}
	w.reached[key] = of
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
		if one.broken || zone == "" || w.calendar.clock(w.era, zone) == nil {
			of.unusable = append(of.unusable, "MaintenanceWindow "+one.name+" cannot be used: ")
			of.byClaim = of.byClaim || one.byClaim
			continue
		}
		covered := w.calendar.covered(w.era, zone, one)
		if one.denies {
			of.deny, of.names = append(of.deny, covered), append(of.names, one.name)
		} else {
			of.allow = append(of.allow, covered)
		}
	}
	return of
}

// opens reports whether changes may begin in a minute.
func (r *reach) opens(n int) bool {
	for _, covered := range r.deny {
		if covered[n] {
			return false
		}
	}
	for _, covered := range r.allow {
		if covered[n] {
			return true
		}
	}
	return len(r.allow) == 0
}

// denying are the windows that deny in a minute.
func (r *reach) denying(n int) []string {
	var all []string
	for i, covered := range r.deny {
		if covered[n] {
			all = append(all, r.names[i])
		}
	}
	slices.Sort(all)
	return all
}

// next returns the first minute after one in which changes may begin: it looks at each.
func (r *reach) next(n int) int {
	if n >= r.from && n < r.to {
		return r.to
	}
	r.from, r.to = n, n+1
	for r.to < minutes && !r.opens(r.to) {
		r.to++
	}
	return r.to
}

// edges returns how often windows begin or end from a minute on until changes may begin.
func (r *reach) edges(n int) int {
	count := 0
	for next := r.next(n); n+1 < next; n++ {
		for _, covered := range slices.Concat(r.allow, r.deny) {
			if covered[n] != covered[n+1] {
				count++
			}
		}
	}
	return count
}

// horizon is as far as the judge looks.
func (w *world) horizon() time.Time { return w.era.instant(minutes) }
