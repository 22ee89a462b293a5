package timed

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/fleets"
)

// Policies is the property that policies and windows hold what they say they hold, and nothing else, for no longer.
// A Bend breaks it, as a bug does.
func Policies(b Bend) fleets.Property {
	c, all := &calendar{}, eras()
	return fleets.Property{Name: "policies", Play: func(g *fleets.Game) {
		newWorld(g, b, c, all[g.Random.IntN(len(all))]).play()
	}}
}

// Undo is the property that contents that fail are undone as the policy says, once, and that this ends.
func Undo(b Bend) fleets.Property {
	c, all := &calendar{}, eras()
	return fleets.Property{Name: "undo", Play: func(g *fleets.Game) {
		w := newWorld(g, b, c, all[g.Random.IntN(len(all))])
		w.drawFailures()
		if w.begin(); !w.Violated() {
			w.play()
		}
	}}
}

// world is one play.
type world struct {
	*fleets.Game
	bend     Bend
	calendar *calendar
	era      era
	now      time.Time

	cma       *addonv1beta1.ClusterManagementAddOn
	placement *clusterv1beta1.Placement
	// planned reports whether a rollout decides who is next, and manual whether people install the add-on.
	planned, manual bool
	// deadline is how long a cluster may be on its way; zero for ever.
	deadline time.Duration
	rules    rules
	windows  []*window
	// content is what the specs ask for, and known the last one that all hub managers have seen.
	content, known string
	sites          []*site
	// rewrites counts the changes of windows, and reached is what the judge found out about them.
	rewrites int
	reached  map[placed]*reach
	// changes counts what was written to the hub, and at is what there was after the last of them.
	changes int
	at      *view
	born    int
	// told are the contents by the names that the hub manager told for them.
	told     map[string]string
	managers []*manager
	calm     bool
	// written counts the writes of status, which is that of the policy, and failures are what contents do to clusters; nil
	// where all are good.
	written  int
	status   policies.AddOnPolicyStatus
	failures *failures
	// undoes reports whether the policy has failed clusters return.
	undoes bool
}

// rules are the AddOnPolicy as the judge understands it.
type rules struct {
	exists, paused, asks bool
	reason               string
	approved             []string
	// action, after, undo and retry say what is undone.
	action      policies.Action
	after       time.Duration
	undo, retry []string
}

func (r rules) object() *policies.AddOnPolicy {
	if !r.exists {
		return nil
	}
	o := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: addOnName}}
	if r.paused {
		o.Spec.Paused = &policies.Pause{Reason: r.reason}
	}
	if r.asks {
		o.Spec.Approval = policies.ApprovalPerRollout
	}
	o.Spec.Approved, o.Spec.Undo, o.Spec.Retry = slices.Clone(r.approved), slices.Clone(r.undo), slices.Clone(r.retry)
	if r.action != "" {
		o.Spec.OnFailure = &policies.OnFailure{Action: r.action, After: metav1.Duration{Duration: r.after}}
	}
	return o
}

// site is a cluster as it is, whatever the hub manager knows.
type site struct {
	place
	name   string
	canary bool
	// selected reports whether the placement selects it, and addOn is nil while it has none.
	selected bool
	addOn    *addonv1beta1.ManagedClusterAddOn
	// has is the content that its works have, began since when, applied whether they are, and down whether its agent is
	// not well. once reports whether they were applied at any time since it began.
	has                 string
	began               time.Time
	applied, once, down bool
	// again reports whether its add-on was created again since the last edit, or a write about it was refused: the hub
	// manager remembers what is not on the hub.
	again bool
	// late reports whether it counted as timed out with what it has, and fell whether its agent was not well: when a hub
	// manager saw that is not on the hub.
	late, fell bool
	// had are the contents that it completed, left those that it ever returned from, and returned those of them since the
	// last edit.
	had, left, returned map[string]bool
}

// view is what there is on the hub at a time, as a cache has it. It is never changed.
type view struct {
	change    int
	rewrites  int
	written   int
	rules     rules
	windows   []*window
	content   string
	places    map[string]place
	addOns    map[string]*addonv1beta1.ManagedClusterAddOn
	served    map[string]bool
	decisions *fleet.Decisions
	gate      gate.Gate
	clusters  map[string]gate.Cluster
}

func newWorld(g *fleets.Game, b Bend, c *calendar, e era) *world {
	r := g.Random
	w := &world{
		Game: g, bend: b, calendar: c, era: e, content: "1", told: map[string]string{},
		reached: map[placed]*reach{},
		placement: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "p", Generation: 1,
		}},
	}
	w.now = e.from.Add(time.Duration(r.IntN(2*24*60))*time.Minute + time.Duration(r.IntN(60))*time.Second)
	w.drawStrategy()
	for i := range 1 + r.IntN(3) {
		s := &site{name: fmt.Sprintf("%c%d", 'a'+r.IntN(26), i), canary: i == 0 && r.IntN(2) == 0, selected: true}
		s.had, s.left, s.returned = map[string]bool{}, map[string]bool{}, map[string]bool{}
		s.place = place{labels: drawLabels(r), claims: drawClaims(r, e)}
		if w.sites = append(w.sites, s); r.IntN(3) > 0 {
			w.install(s)
		}
	}
	if r.IntN(3) > 0 {
		w.rules = rules{exists: true, paused: r.IntN(6) == 0, asks: r.IntN(3) == 0}
	}
	for i := range r.IntN(4) {
		w.windows = append(w.windows, drawWindow(r, e, "w"+strconv.Itoa(i)))
	}
	for range 1 + r.IntN(4)/3 {
		w.managers = append(w.managers, w.start())
	}
	return w
}

func (w *world) chance(once int) bool { return w.Random.IntN(once) == 0 }

func (w *world) drawStrategy() {
	config := clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString(pick(w.Random, "0%", "100%"))}
	config.MinSuccessTime.Duration = pick(w.Random, 0, 0, 5*time.Minute)
	if w.deadline = pick(w.Random, 0, 10*time.Minute, 2*time.Hour); w.deadline > 0 {
		config.ProgressDeadline = fmt.Sprintf("%dm", w.deadline/time.Minute)
	}
	mandatory := clusterv1alpha1.MandatoryDecisionGroups{
		MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}},
	}
	template := fixture.Template("t")
	var s clusterv1alpha1.RolloutStrategy
	switch w.Random.IntN(6) {
	case 0:
		w.cma, w.manual = fixture.NewCMA([]addonv1beta1.AddOnConfig{template}), true
		return
	case 1:
		s.Type, s.All = clusterv1alpha1.All, &clusterv1alpha1.RolloutAll{RolloutConfig: config}
	case 2:
		w.planned = true
		s = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: config, MandatoryDecisionGroups: mandatory,
			},
		}
	default:
		w.planned = true
		s = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
				RolloutConfig: config, MandatoryDecisionGroups: mandatory,
				MaxConcurrency: intstr.FromInt32(int32(1 + w.Random.IntN(3))),
			},
		}
	}
	w.cma = fixture.NewCMA(nil, fixture.ByStrategy(s, fixture.Placement("p", template)))
}

// view returns what there is now.
func (w *world) view() *view {
	if w.at != nil && w.at.change == w.changes {
		return w.at
	}
	v := &view{
		change: w.changes, rewrites: w.rewrites, written: w.written, rules: w.rules, windows: slices.Clone(w.windows),
		content: w.content,
		places:  map[string]place{}, served: map[string]bool{}, clusters: map[string]gate.Cluster{},
		addOns: map[string]*addonv1beta1.ManagedClusterAddOn{}, decisions: w.decisions(),
	}
	var objects []policies.MaintenanceWindow
	for _, one := range w.windows {
		o := one.object()
		if w.bend.Window != nil {
			w.bend.Window(&o)
		}
		objects = append(objects, o)
	}
	policy := w.rules.object()
	if policy != nil {
		policy.Status = w.status
	}
	if policy != nil && w.bend.Policy != nil {
		w.bend.Policy(policy)
	}
	v.gate = gate.New(addOnName, policy, objects)
	for _, s := range w.sites {
		v.places[s.name] = s.place
		of := gate.Cluster{Labels: s.labels, Claims: s.claims}
		if w.bend.Cluster != nil {
			w.bend.Cluster(&of)
		}
		v.clusters[s.name] = of
		if s.addOn != nil {
			v.addOns[s.name] = s.addOn
		} else if s.selected {
			v.served[s.name] = true
		}
	}
	w.at = v
	return v
}

// decisions are those of the placement.
func (w *world) decisions() *fleet.Decisions {
	var pages []*clusterv1beta1.PlacementDecision
	for i, group := range []string{"canary", ""} {
		page := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{UID: w.placement.UID, Controller: new(true)}},
			Name:            "p-decision-" + strconv.Itoa(i+1),
			Labels: map[string]string{
				names.LabelPlacement: "p", names.LabelDecisionGroupName: group,
				names.LabelDecisionGroupIndex: strconv.Itoa(i),
			},
		}}
		for _, s := range w.sites {
			if s.selected && s.canary == (group == "canary") {
				page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: s.name})
			}
		}
		pages = append(pages, page)
	}
	placement := *w.placement
	placement.Status.Conditions = []metav1.Condition{fleet.Mark(1, pages)}
	return fleet.NewDecisions(fleet.Seen{
		Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: &placement, Pages: pages, Own: true,
	}, w.now)
}

// play lets people, clusters and the clock take their turns; then nothing bad happens any more, and it ends.
func (w *world) play() {
	if w.settle(); w.Violated() {
		return
	}
	for range 4 + w.Random.IntN(14) {
		w.Steps++
		if w.failures != nil && w.Random.IntN(4) > 0 {
			w.undoers()
		} else {
			w.people()
		}
		for _, s := range w.sites {
			w.move(s)
		}
		w.lags()
		if w.settle(); w.Violated() {
			return
		}
		if w.pass(w.drawTime()); w.Violated() {
			return
		}
		if w.now.Sub(w.era.from) > lasts-24*time.Hour {
			break
		}
	}
	w.end()
}

// drawTime draws until when the clock moves on.
func (w *world) drawTime() time.Time {
	switch w.Random.IntN(8) {
	case 0:
		return w.now.Add(time.Duration(1+w.Random.IntN(20)) * time.Second)
	case 1, 2:
		return w.now.Add(time.Duration(1+w.Random.IntN(600)) * time.Second)
	case 3:
		return w.now.Add(time.Duration(1+w.Random.IntN(12*60)) * time.Minute)
	case 4:
		if next := w.wakes(); !next.IsZero() {
			return next.Add(-time.Second)
		}
	case 5:
		return w.now
	}
	if next := w.wakes(); !next.IsZero() {
		return next
	}
	return w.now.Add(time.Hour)
}

// wakes returns when the first hub manager looks again by itself; zero for never.
func (w *world) wakes() time.Time {
	var first time.Time
	for _, m := range w.managers {
		if !m.wake.IsZero() && (first.IsZero() || m.wake.Before(first)) {
			first = m.wake
		}
	}
	return first
}

// pass lets the clock move on: at each instant that a hub manager named, it looks.
func (w *world) pass(until time.Time) {
	if last := w.era.from.Add(lasts); until.After(last) {
		until = last
	}
	for range 40 {
		next := w.wakes()
		if next.IsZero() || next.After(until) || w.Violated() {
			break
		}
		w.now = next
		w.settle()
	}
	if next := w.wakes(); !w.Violated() && until.After(w.now) && (next.IsZero() || until.Before(next)) {
		w.now = until
	}
}
