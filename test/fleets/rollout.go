package fleets

import (
	"fmt"
	"slices"
	"time"

	"github.com/spokelet/spokelet/hub/rollout/planner"
)

// Planner is a planner to play against.
type Planner func(planner.Fleet) planner.Plan

// Rollout returns the property that every rollout obeys its strategy, and ends when every cluster succeeds.
func Rollout(decide Planner) Property {
	return Property{Name: "rollout", Play: func(g *Game) {
		w := drawWorld(g, decide)
		for range g.Random.IntN(30) {
			if w.turn(); g.Violated() {
				return
			}
			w.events()
		}
		w.end()
	}}
}

// world holds what there is: clusters with their states, and the time.
type world struct {
	*Game
	decide Planner
	now    time.Time
	places []*place
	// trouble is how many of 100 clusters in flight fail in a turn, late how many of 100 admissions are not written.
	trouble, late int
	// born counts the clusters that there ever were.
	born int
}

// place is a placement with its clusters.
type place struct {
	settings
	held bool
	// unserved is how many clusters are selected that never get the add-on.
	unserved int
	clusters []planner.Cluster
	// names are the names of the decision groups by their indexes.
	names map[int]string
}

func drawWorld(g *Game, decide Planner) *world {
	w := &world{Game: g, decide: decide, now: time.Date(2026, 1, 1, 0, 0, 0, g.Random.IntN(1e9), time.UTC)}
	w.trouble = []int{0, 0, 5, 20, 60}[g.Random.IntN(5)]
	w.late = []int{0, 0, 30}[g.Random.IntN(3)]
	for range 1 + g.Random.IntN(2) {
		p := &place{settings: drawSettings(g.Random), names: map[int]string{}, unserved: max(0, g.Random.IntN(6)-3)}
		size := g.Random.IntN(12)
		if g.chance(200) {
			size = 50 + g.Random.IntN(200)
		}
		w.places = append(w.places, p)
		for range size {
			w.join(p)
		}
	}
	return w
}

// join adds a cluster to a placement.
func (w *world) join(p *place) {
	w.born++
	c := planner.Cluster{Name: fmt.Sprintf("%c%d", 'a'+w.Random.IntN(26), w.born)}
	w.group(p, &c)
	if w.chance(2) {
		c.State = planner.Awaited // Add-ons are created one by one, in any order.
	}
	at := w.Random.IntN(len(p.clusters) + 1)
	p.clusters = slices.Insert(p.clusters, at, c)
}

// group puts a cluster into a decision group; indexes have gaps, and some clusters have none.
func (w *world) group(p *place, c *planner.Cluster) {
	c.Group = []int{0, 0, 1, 1, 2, 4, 7, -1}[w.Random.IntN(8)]
	if _, known := p.names[c.Group]; !known {
		p.names[c.Group] = drawGroupName(w.Random)
	}
	c.GroupName = p.names[c.Group]
}

// fleet returns the input of the planner.
func (w *world) fleet(now time.Time) planner.Fleet {
	f := planner.Fleet{Now: now}
	for _, p := range w.places {
		given := planner.Placement{
			Strategy: p.strategy, Selected: len(p.clusters) + p.unserved, Clusters: p.clusters,
		}
		if p.groupSize != nil {
			given.GroupSize = p.groupSize.value()
		}
		if p.held {
			given.Held = "held"
		}
		f.Placements = append(f.Placements, given)
	}
	return f
}

// plan asks the planner.
func (w *world) plan(now time.Time) planner.Plan {
	w.Decisions++
	return w.decide(w.fleet(now))
}

// turn makes one decision, judges it, and carries it out.
func (w *world) turn() planner.Plan {
	w.Steps++
	plan := w.plan(w.now)
	if len(plan.Placements) != len(w.places) {
		w.Violate("%d results for %d placements", len(plan.Placements), len(w.places))
		return plan
	}
	for n, p := range w.places {
		w.judge(p, plan.Placements[n])
	}
	if w.Violated() {
		return plan
	}
	if w.chance(2) {
		w.judgeOrder(plan)
	}
	if w.chance(2) {
		w.judgeWake(plan)
	}
	w.carryOut(plan)
	return plan
}

// carryOut lets the admitted clusters begin. Some writes come to nothing; those clusters wait for the next decision.
func (w *world) carryOut(plan planner.Plan) {
	all := true
	for n, p := range w.places {
		for i := range p.clusters {
			c := &p.clusters[i]
			if c.State != planner.Pending || !plan.Placements[n].Admits(c.Name) {
				continue
			}
			if w.Random.IntN(100) < w.late {
				all = false
				continue
			}
			c.State, c.Since = planner.InFlight, w.now
		}
	}
	if all && w.chance(2) {
		w.judgeAgain(plan)
	}
}

// events lets time pass, clusters move, and people change their minds.
func (w *world) events() {
	switch w.Random.IntN(3) {
	case 0:
		w.now = w.now.Add(time.Duration(w.Random.Int64N(int64(5 * time.Minute))))
	case 1:
		w.now = w.now.Add(time.Duration(w.Random.IntN(10)) * time.Second)
	}
	for _, p := range w.places {
		for i := range p.clusters {
			w.move(&p.clusters[i])
		}
		w.edit(p)
	}
}

// move lets a cluster go on by itself.
func (w *world) move(c *planner.Cluster) {
	drawn := w.Random.IntN(100)
	switch c.State {
	case planner.InFlight:
		if drawn < w.trouble {
			c.State = planner.Failed
		} else if drawn < w.trouble+35 {
			c.State, c.Since = planner.Succeeded, w.now
		}
	case planner.Failed:
		if drawn < 10 {
			c.State, c.Since = planner.Succeeded, w.now
		} else if drawn < 15 {
			c.State = planner.InFlight
		}
	case planner.Succeeded:
		if drawn == 0 && w.trouble > 0 {
			c.State, c.Since = planner.Failed, w.now
		}
	case planner.Awaited:
		if drawn < 30 {
			c.State, c.Since = planner.Pending, time.Time{}
		}
	case planner.Pending:
	}
	// The instant may not be known after a restart.
	if c.State != planner.Pending && c.State != planner.Awaited && w.chance(200) {
		c.Since = time.Time{}
	}
}

// edit changes what people change: clusters, configurations and strategies.
func (w *world) edit(p *place) {
	if w.chance(10) {
		w.join(p)
	}
	if w.chance(60) {
		p.settings = drawSettings(w.Random)
	}
	if w.chance(150) {
		p.settings = drawUnusable(w.Random)
	}
	if w.chance(40) {
		p.held = !p.held
	}
	if w.chance(30) {
		w.revise(p)
	}
	if len(p.clusters) == 0 {
		return
	}
	at := w.Random.IntN(len(p.clusters))
	switch w.Random.IntN(30) {
	case 0, 1:
		p.clusters = slices.Delete(p.clusters, at, at+1)
	case 2:
		w.group(p, &p.clusters[at])
	case 3, 4:
		hold(&p.clusters[at], "its own configuration does not exist", false, false)
	case 5, 6, 7:
		hold(&p.clusters[at], "", false, false)
	case 8:
		// A configuration of its own changes.
		revise(&p.clusters[at])
	case 11, 12:
		hold(&p.clusters[at], "no window allows it now", true, false)
	case 13, 14:
		hold(&p.clusters[at], "it depends on another add-on", false, true)
	case 9, 10:
		// A user deletes the add-on, and it is created again.
		p.clusters[at].State, p.clusters[at].Since, p.clusters[at].Broken = planner.Awaited, time.Time{}, false
	}
}

// hold lets a cluster wait, for a window, for another add-on, or for something else; for nothing without a cause.
func hold(c *planner.Cluster, why string, gated, depends bool) {
	c.Held, c.Gated, c.Depends = why, gated, depends
}

// revise gives the placement another target.
func (w *world) revise(p *place) {
	for i := range p.clusters {
		revise(&p.clusters[i])
	}
}

// revise gives a cluster another target.
func revise(c *planner.Cluster) {
	if c.State == planner.Awaited {
		return
	}
	if c.State != planner.Pending {
		c.Broken = c.State != planner.Succeeded
	}
	c.State, c.Since = planner.Pending, time.Time{}
}

// end lets every cluster succeed, and expects the rollout to end.
func (w *world) end() {
	most := 50
	for _, p := range w.places {
		p.held = false
		if p.unusable {
			p.settings = drawSettings(w.Random)
		}
		for i := range p.clusters {
			hold(&p.clusters[i], "", false, false)
			if c := &p.clusters[i]; c.State == planner.Awaited {
				c.State = planner.Pending
			}
		}
		most += 10 * len(p.clusters)
	}
	for range most {
		plan := w.turn()
		if w.Violated() {
			return
		}
		if w.ended(plan) {
			return
		}
		if moved := w.succeed(); moved {
			continue
		}
		if w.late > 0 && slices.ContainsFunc(plan.Placements, func(r planner.Result) bool { return len(r.New) > 0 }) {
			continue // The writes come to nothing once more.
		}
		if plan.Wake.IsZero() {
			w.Violate("nothing moves any more, and nobody wakes")
			return
		}
		w.now = plan.Wake
	}
	w.Violate("the rollout does not end")
}

// succeed lets some clusters in flight or failed succeed, and reports whether any did.
func (w *world) succeed() (moved bool) {
	for _, p := range w.places {
		for i := range p.clusters {
			c := &p.clusters[i]
			if (c.State == planner.InFlight || c.State == planner.Failed) && (!moved || w.chance(2)) {
				c.State, c.Since = planner.Succeeded, w.now
				moved = true
			}
		}
	}
	return moved
}

// ended reports whether every cluster has its target.
func (w *world) ended(plan planner.Plan) bool {
	if !plan.Wake.IsZero() {
		return false
	}
	for n, p := range w.places {
		for _, c := range p.clusters {
			if c.State != planner.Succeeded {
				return false
			}
		}
		if r := plan.Placements[n]; len(p.clusters) > 0 && !r.Counts.Complete() {
			w.Violate("all clusters succeeded, and the counts are %+v", r.Counts)
		}
	}
	return true
}
