package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts are the inputs of the decision about an add-on on all its clusters.
type facts struct {
	now time.Time
	cma *addonv1beta1.ClusterManagementAddOn
	// placements are what the placements of the install strategy have decided, in its order.
	placements []*fleet.Decisions
	// members are the add-ons by cluster; none for an add-on that people install.
	members map[string]*member
	states  addonconfig.States
	// served are those of the selected clusters without an add-on that will get it: they exist, are accepted and are not
	// being deleted.
	served map[string]bool
	// admitted has, for each cluster that was admitted by an earlier plan, the target and when that was.
	admitted map[string]admission
	// ways are those of an earlier plan, by cluster.
	ways map[string]way
	// lacks has, for each placement whose last completed content cannot be given again, why not.
	lacks map[string]string
	// gate says whether clusters may begin to change, and clusters is what it knows of them.
	gate     gate.Gate
	clusters map[string]gate.Cluster
}

// admission is the decision about one cluster.
type admission struct {
	// addOn is the ManagedClusterAddOn that the decision is about: one that is created again inherits nothing.
	addOn types.UID
	// target identifies the configuration that the decision is about.
	target string
	// granted reports whether the cluster may have it; reason is why not.
	granted bool
	reason  string
	// since is when it was first granted.
	since time.Time
	// way is how the cluster gets there, where the strategy lets others wait for it.
	way addonconfig.Way
	// undo reports whether it failed and is to return to what it had, and notUndone is why that waits.
	undo      bool
	notUndone string
}

// decided is the part of a plan that the next one needs. Its maps are replaced, and never changed.
type decided struct {
	// admissions are the decisions by cluster, and ways those of the clusters that have not arrived.
	admissions map[string]admission
	ways       map[string]way
}

// plan is the decision about an add-on on all its clusters.
type plan struct {
	decided

	placements []planner.Result
	// stuck are the stuck add-ons of each placement.
	stuck []stuckAddOns
	// gated are the contents that clusters wait for because of the gate.
	gated contentsOf
	// unused are approvals that are of no use now.
	unused []string
	// undoings are what each placement returns to; none where the add-on has no policy.
	undoings []*undoing
	// wake is when time alone may change the decision; zero for never.
	wake time.Time
}

// decide plans the rollout.
func decide(f facts) plan {
	p := plan{decided: decided{make(map[string]admission, len(f.members)), map[string]way{}}, gated: contentsOf{}}
	looked := sets.New[string]()
	given := planner.Fleet{Now: f.now, Placements: make([]planner.Placement, len(f.placements))}
	all, surveys := make([]targets, len(f.placements)), make([]survey, len(f.placements))
	for index := range f.placements {
		s := f.placement(index, &all[index], p.ways, looked)
		given.Placements[index], surveys[index] = s.placement, s
		p.stuck, p.undoings = append(p.stuck, s.stuck), append(p.undoings, s.undo)
		p.gated.merge(s.gated)
		p.wake = reconcile.Earliest(reconcile.Earliest(p.wake, s.stuck.recheck), s.gateWake)
	}
	if f.cma != nil && f.gate.Policy() != nil && !addonapi.InstalledByPlacements(f.cma) {
		u, until := f.unplaced()
		p.undoings, p.wake = append(p.undoings, u), reconcile.Earliest(p.wake, until)
	}
	uncertain, until := f.hold(given.Placements)
	p.wake = reconcile.Earliest(p.wake, until)
	p.unused = f.unused(surveys, uncertain)
	made := planner.Make(given)
	p.placements, p.wake = made.Placements, reconcile.Earliest(p.wake, made.Wake)
	for index, result := range made.Placements {
		p.gated.turn(index, result)
		for _, cluster := range result.Admit {
			p.admissions[cluster] = f.granted(f.members[cluster], all[index].target(cluster))
		}
		p.setOut(given.Placements[index], result, all[index].common, f)
		for _, wait := range result.Hold {
			uncertain := given.Placements[index].Held != "" || !f.placements[index].Selects(wait.Name)
			p.admissions[wait.Name] = f.waits(f.members[wait.Name], all[index].target(wait.Name), wait.Why, uncertain)
		}
		if f.plans(given.Placements[index].Strategy) {
			p.tell(given.Placements[index], result, f)
		}
		p.wake = reconcile.Earliest(p.wake, p.undo(f, given.Placements[index], result, index))
	}
	for cluster, earlier := range f.admitted {
		if _, planned := p.admissions[cluster]; !planned && uncertain {
			p.admissions[cluster] = earlier // It may be selected, and is decided about again when that is known.
		}
	}
	for cluster, before := range f.ways {
		if uncertain && !looked.Has(cluster) {
			p.ways[cluster] = before
		}
	}
	return p
}

// setOut begins the ways of the clusters that are admitted now, or goes on with them, and remembers who timed out.
// While the strategy cannot be used, or nothing is decided, nobody times out, and who did before has.
func (p plan) setOut(of planner.Placement, result planner.Result, target string, f facts) {
	for _, cluster := range result.New {
		w, onWay := p.ways[cluster]
		if !onWay {
			w = way{target: target, addOn: f.members[cluster].uid, since: f.now}
		}
		w.paused = time.Time{}
		p.ways[cluster] = w
	}
	if result.Problem != "" || of.Held != "" || !f.plans(of.Strategy) {
		return
	}
	late := sets.New(result.TimedOut...)
	for _, c := range of.Clusters {
		if w, onWay := p.ways[c.Name]; onWay && (c.State == planner.InFlight || late.Has(c.Name)) {
			w.failed = late.Has(c.Name) && !w.excused()
			p.ways[c.Name] = w
		}
	}
}

// tell says of the clusters how they get there.
func (p plan) tell(of planner.Placement, result planner.Result, f facts) {
	late := sets.New(result.TimedOut...)
	for _, c := range of.Clusters {
		a, decided := p.admissions[c.Name]
		if !decided {
			continue
		}
		w := p.ways[c.Name]
		switch {
		case c.State == planner.Pending && w.failed && !c.HasFailed: // It never had what it waits for now.
			a.way = addonconfig.Way{}
		case w.fell && w.failed:
			a.way = addonconfig.Way{Stage: addonconfig.ReasonUnavailable}
		case w.broke, c.State == planner.Failed && !w.failed:
			a.way = addonconfig.Way{Stage: addonconfig.ReasonFailed}
		case late.Has(c.Name), w.failed:
			a.way = addonconfig.Way{Stage: addonconfig.ReasonTimedOut}
		case w.excused() && !c.AwaitsOwn.IsZero():
			a.way = addonconfig.Way{Stage: addonconfig.ReasonAwaits}
		case !w.paused.IsZero() && w.knew: // What counts moves with each plan, until it goes on.
			a.way = f.before(c.Name)
		case w.knew:
			a.way = addonconfig.Way{Stage: addonconfig.ReasonAgain, Since: w.since.UTC().Truncate(time.Second)}
		default:
			a.way = addonconfig.Way{}
		}
		if a.way.Stage != "" {
			a.way.Progress = f.members[c.Name].progressAt.Unix()
		}
		p.admissions[c.Name] = a
	}
}

// before returns what was told of a cluster before this plan, by the status where this process has not planned it yet.
func (f facts) before(cluster string) addonconfig.Way {
	if earlier, planned := f.admitted[cluster]; planned {
		return earlier.way
	}
	return f.members[cluster].way
}

// hold holds the placements of which it is uncertain which clusters they own, because their own decisions or, for a
// while, those of a later placement are not complete. It reports whether there are any, and when that may end by
// itself.
func (f facts) hold(placements []planner.Placement) (uncertain bool, wake time.Time) {
	const unknown = "waits until it is known which clusters are selected: "
	var later string
	for index := range slices.Backward(placements) {
		placements[index].Held = later
		until, err := f.placements[index].Uncertain(f.now)
		if err != nil {
			placements[index].Held = unknown + err.Error()
		}
		wake = reconcile.Earliest(wake, until)
		if until, err = f.placements[index].Doubted(f.now); !until.IsZero() {
			later, wake = unknown+err.Error(), reconcile.Earliest(wake, until)
		}
		uncertain = uncertain || placements[index].Held != ""
	}
	return uncertain, wake
}

// keeps returns why an add-on keeps what it has although a placement owns its cluster: a later one that has been in
// doubt for long is known to own it. "" where it does not.
func (f facts) keeps(index int, m *member) string {
	owner := fleet.Owner{Index: index}
	for later := index + 1; later < len(f.placements); later++ {
		if until, err := f.placements[later].Doubted(f.now); err != nil && until.IsZero() {
			owner.Doubts = append(owner.Doubts, fleet.Doubt{Index: later, Why: err})
		}
	}
	if len(owner.Doubts) == 0 {
		return ""
	}
	keeps := owner.Keeps(addonconfig.Names(m.references), func(placement int) []addonv1beta1.AddOnConfig {
		return addonconfig.Wanted(f.cma, placement, m.configs)
	})
	if len(keeps) == 0 {
		return ""
	}
	return "keeps what it has: " + keeps[0].Why.Error()
}

// waits returns the decision about an add-on that waits. While it is uncertain whether its cluster is selected, which
// mostly is a moment, one that waited already is not told another reason.
func (f facts) waits(m *member, target, why string, uncertain bool) admission {
	if earlier := f.admitted[m.cluster]; uncertain && earlier.isAbout(m.uid, target) && !earlier.granted {
		return earlier
	}
	return admission{addOn: m.uid, target: target, reason: why}
}

// targets identify the targets of the add-ons of a placement: one for nearly all of them, and those of the others by
// cluster.
type targets struct {
	common string
	others map[string]string
}

func (t *targets) target(cluster string) string {
	if other, found := t.others[cluster]; found {
		return other
	}
	return t.common
}

func (t *targets) set(cluster, target string) {
	if target == t.common {
		return
	}
	if t.others == nil {
		t.others = map[string]string{}
	}
	t.others[cluster] = target
}

// granted returns the admission of an add-on; it begins when the target was first granted.
func (f facts) granted(m *member, target string) admission {
	if earlier := f.admitted[m.cluster]; earlier.granted && earlier.isAbout(m.uid, target) {
		earlier.undo, earlier.notUndone = false, ""
		return earlier
	}
	return admission{addOn: m.uid, target: target, granted: true, since: f.now}
}

// isAbout reports whether the decision is about an add-on and a target.
func (a admission) isAbout(addOn types.UID, target string) bool {
	return a.addOn == addOn && a.target == target
}
