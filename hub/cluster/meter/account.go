package meter

import (
	"slices"
	"time"
)

// things is the number of things of a cluster that have a count, for each rule.
const things = 16

// tally counts in the window that began at since, and keeps the count of the window before it.
type tally struct {
	since     time.Duration
	n, before int32
}

// count is how often something was done to a thing.
type count struct {
	thing Thing
	tally tally
	// found is set while it is a finding.
	found bool
}

// account has the counts of a cluster.
type account struct {
	all [rules]count
	one [rules][]count
}

// roll moves a tally to the window of a time.
func (t *tally) roll(at, window time.Duration) {
	switch passed := at - t.since; {
	case passed >= 2*window:
		*t = tally{since: at}
	case passed >= window:
		*t = tally{since: t.since + window, before: t.n}
	}
}

// most returns the larger count of the two windows.
func (t *tally) most() int { return int(max(t.n, t.before)) }

// note counts one more at a time, and reports whether that is a new finding.
func (a *account) note(at time.Duration, rule Rule, thing Thing) bool {
	before := a.found(rule)
	a.all[rule].tally.add(at, rule)
	a.of(at, rule, thing).tally.add(at, rule)
	a.judge(at, rule)
	return before == nil && a.found(rule) != nil
}

// add counts one more.
func (t *tally) add(at time.Duration, rule Rule) {
	t.roll(at, rule.Limit().Window)
	t.n++
}

// of returns the count of a thing. If there is no room, the thing with the smallest count makes room.
func (a *account) of(at time.Duration, rule Rule, thing Thing) *count {
	list := &a.one[rule]
	for i := range *list {
		if (*list)[i].thing == thing {
			return &(*list)[i]
		}
	}
	if len(*list) < things {
		*list = append(*list, count{thing: thing, tally: tally{since: at}})
		return &(*list)[len(*list)-1]
	}
	least := 0
	for i := range *list {
		c := &(*list)[i]
		c.tally.roll(at, rule.Limit().Window)
		if !c.found && ((*list)[least].found || c.tally.most() < (*list)[least].tally.most()) {
			least = i
		}
	}
	(*list)[least] = count{thing: thing, tally: tally{since: at}}
	return &(*list)[least]
}

// counts returns the counts of a rule, those of single things first.
func (a *account) counts(rule Rule) []*count {
	all := make([]*count, 0, things+1)
	for i := range a.one[rule] {
		all = append(all, &a.one[rule][i])
	}
	return append(all, &a.all[rule])
}

// found returns the finding of a rule; nil without one.
func (a *account) found(rule Rule) *count {
	if a.all[rule].found {
		return &a.all[rule]
	}
	if i := slices.IndexFunc(a.one[rule], func(c count) bool { return c.found }); i >= 0 {
		return &a.one[rule][i]
	}
	return nil
}

// judge ends the finding of a rule that is over, and makes a new one if there is none.
func (a *account) judge(at time.Duration, rule Rule) {
	limit := rule.Limit()
	if c := a.found(rule); c != nil {
		c.tally.roll(at, limit.Window)
		if c.found = c.tally.most() > limit.of(c.thing)/2; c.found {
			return
		}
	}
	for _, c := range a.counts(rule) {
		c.tally.roll(at, limit.Window)
		if c.tally.most() > limit.of(c.thing) {
			c.found = true
			return
		}
	}
}

// of returns the limit of a thing.
func (l Limit) of(thing Thing) int {
	if thing == (Thing{}) {
		return l.All
	}
	return l.One
}

// read returns the findings at a time, and when the first of them may end. It drops the counts that are zero.
func (a *account) read(at time.Duration) (findings []Finding, next time.Duration) {
	for rule := range Rule(rules) {
		window := rule.Limit().Window
		a.judge(at, rule)
		if c := a.found(rule); c != nil {
			findings = append(findings, Finding{Rule: rule, Thing: c.thing})
			if end := c.tally.since + window; next == 0 || end < next {
				next = end
			}
		}
		a.all[rule].tally.roll(at, window)
		a.one[rule] = slices.DeleteFunc(a.one[rule], func(c count) bool {
			c.tally.roll(at, window)
			return c.tally.most() == 0
		})
	}
	return findings, next
}

// empty reports whether nothing was counted lately.
func (a *account) empty() bool {
	for rule := range Rule(rules) {
		if len(a.one[rule]) > 0 || a.all[rule].tally.most() > 0 {
			return false
		}
	}
	return true
}
