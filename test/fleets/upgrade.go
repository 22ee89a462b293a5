package fleets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// Senses holds what the hub manager gets to know of an upgrade. A test takes something away, as a bug does.
type Senses struct {
	// World changes what the planner knows, Configured the add-on after its configuration is recorded, and Progress what
	// is known of its works.
	World      func(*rollout.World)
	Configured func(before, after *addonv1beta1.ManagedClusterAddOn)
	Progress   func(*addon.Progress)
	// ByName shows an add-on that is created again as the one that was deleted.
	ByName bool
}

// Upgrade is the property that no cluster gets a version because another one breaks, or seems to be gone: while it is
// installed on a fleet, upgraded and mended, with agents whose clocks are off or that feed nothing back, pods that take
// minutes, clusters that break while they soak, deadlines that pass, add-ons that come late or are created again, and
// decisions that are torn or replaced.
func Upgrade(s Senses) Property {
	return Property{Name: "upgrade", Play: func(g *Game) { newUpgrade(g, s).play() }}
}

// upgrade is one add-on on a fleet, with a Placement whose first decision group is mandatory.
type upgrade struct {
	*Game
	senses     Senses
	now        time.Time
	planner    *rollout.Reconciler
	configurer *configure.Configurer
	cma        *addonv1beta1.ClusterManagementAddOn
	placement  *clusterv1beta1.Placement
	sites      []*site
	limit      int
	soak       time.Duration
	// deadline is how long a cluster may be on its way, zero for ever; tolerated is how many may fail that are in no
	// mandatory group.
	deadline  time.Duration
	tolerated int
	version   int
	born      int
	// bad is how many of 100 clusters break in a step, while they have the second version.
	bad int
	// torn is for how many steps the decisions are not complete, and calm whether nothing bad happens any more.
	torn int
	calm bool
	// edited reports whether the version is a new one, and planned whether the planner decided about what is there.
	edited, planned bool
}

// site is a cluster as it is, whatever the hub manager knows.
type site struct {
	name   string
	canary bool
	// offset is how far the clock of its agent is off, and mute reports that the agent feeds nothing back.
	offset time.Duration
	mute   bool
	addOn  *addonv1beta1.ManagedClusterAddOn
	// has is the version that the works have, applied whether they are, and pods when their pods are ready.
	has     string
	applied bool
	pods    time.Time
	// down reports whether its agent is not well, and fell is since when.
	down bool
	fell time.Time
	// got is when it was given the version, and began since when it is on its way to it, which begins again when its works
	// are not applied any more.
	got, began time.Time
	// late is the version that it was on its way to when its add-on was deleted.
	late int
	// counts reports whether the hub manager must know that it failed, and lost the same of the add-on before this one,
	// until it is given the version again. returns reports whether it may know so much.
	counts, lost, returns bool
	// reached is since when the cluster has the version, zero when it has not; done reports that it was well with it for
	// long enough, and known that the hub manager has seen so.
	reached     time.Time
	done, known bool
	// broke reports that it had the version, broke before it was done, and has not had it again.
	broke bool
	// told reports whether the planner decided about it since the last edit: nothing is recorded of works between an edit
	// and the plan for it. lacks reports whether they were not complete when that was recorded; pods of complete ones do
	// not count. broken reports whether it was known not to be well with an earlier version when the planner decided, and
	// fine whether it was known to be well with one, also in the step before.
	told, lacks, broken, fine bool
	// whole reports whether it was well when the planner decided, and seen whether it was so in the step before.
	whole, seen bool
}

var upgraded = fixture.Template("t")

func newUpgrade(g *Game, s Senses) *upgrade {
	u := &upgrade{
		Game: g, senses: s, now: fixture.Noon(), planner: &rollout.Reconciler{}, limit: 1 + g.Random.IntN(3),
		soak: time.Duration(g.Random.IntN(4)) * 5 * time.Minute, bad: g.Random.IntN(3) * 4,
		placement: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "p", Generation: 1,
		}},
	}
	u.soak = max(u.soak, 10*time.Second)
	config := clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: u.soak}}
	if g.chance(2) {
		minutes := []int{1, 5, 20}[g.Random.IntN(3)]
		u.deadline, config.ProgressDeadline = time.Duration(minutes)*time.Minute, fmt.Sprintf("%dm", minutes)
	}
	if g.chance(2) {
		u.tolerated = 1 + g.Random.IntN(2)
		config.MaxFailures = intstr.FromInt32(int32(u.tolerated))
	}
	u.cma = fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.FromInt32(int32(u.limit)), RolloutConfig: config,
			MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
				MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}},
			},
		},
	}, fixture.Placement("p", upgraded)))
	u.configurer = &configure.Configurer{
		Admission: u.planner.Admission,
	}
	for i := range 3 + g.Random.IntN(8) {
		at := &site{name: fmt.Sprintf("%c%02d", 'a'+g.Random.IntN(26), i), canary: i < g.Random.IntN(3), mute: g.chance(5)}
		if g.chance(2) {
			at.offset = time.Duration(g.Random.IntN(7)-3) * time.Hour
		}
		u.sites = append(u.sites, at)
	}
	return u
}

// play installs the first version, upgrades to the second, and mends with the third.
func (u *upgrade) play() {
	for u.version = 1; u.version <= 3; u.version++ {
		for _, at := range u.sites {
			at.reached, at.done, at.broke, at.told = time.Time{}, false, false, false
			at.counts, at.lost, at.returns, at.known = false, false, false, false
		}
		u.calm, u.edited = false, u.version > 1
		for range u.Random.IntN(60) {
			if u.step(); u.Violated() {
				return
			}
		}
		u.calm = u.version != 2
		for n := 0; u.calm && !u.everywhere(); n++ {
			if u.step(); u.Violated() {
				return
			}
			if n > 40*len(u.sites) {
				u.Violate("version %d does not reach all clusters though all is well: %+v", u.version, u.undone())
				return
			}
		}
	}
}

func (u *upgrade) undone() (names []string) {
	for _, at := range u.sites {
		if !at.done {
			names = append(names, at.name)
		}
	}
	return names
}

func (u *upgrade) everywhere() bool { return len(u.undone()) == 0 }

// step lets time pass and the clusters move; then the hub manager looks at them, plans, and carries it out.
func (u *upgrade) step() {
	u.Steps++
	u.now = u.now.Add([]time.Duration{2 * time.Second, 30 * time.Second, 2 * time.Minute}[u.Random.IntN(3)])
	for _, at := range u.sites {
		if u.edited { // The hub manager knows what there was, and plans at once.
			break
		}
		u.move(at)
	}
	u.edited = false
	u.observe()
	w := u.world()
	if u.senses.World != nil {
		u.senses.World(&w)
	}
	u.planner.Rehearse(w)
	u.Decisions++
	for _, at := range u.sites {
		at.known = at.done && (at.known || u.torn == 0)
		at.counts, at.returns = u.torn == 0 && u.failed(at), at.returns || u.mayCount(at)
		at.seen, at.whole = at.whole, at.well(u.now)
		was := at.has != "" && at.has != strconv.Itoa(u.version)
		at.broken, at.fine = was && (at.lacks || at.down) && !at.whole, was && !at.lacks && !at.down && at.seen
		at.told = at.told || w.Placements[0].Selects(at.name)
	}
	u.planned = true
	u.observe()
	u.planned = false
}

// move lets a cluster go on by itself.
func (u *upgrade) move(at *site) {
	switch {
	case at.addOn == nil:
		if u.chance(4) || u.calm {
			u.install(at)
		}
		return
	case u.chance(100) && !u.calm: // It is deleted and installed again, at once or later.
		again := site{name: at.name, canary: at.canary, offset: at.offset, mute: at.mute}
		if at.has == strconv.Itoa(u.version) || at.late == u.version {
			again.lost, again.returns = at.counts, at.returns
			if !at.known { // Its deadline does not begin again.
				again.got, again.late = at.got, u.version
			}
		}
		*at = again
		if u.chance(2) {
			u.install(at)
		}
		return
	case !at.applied && at.has != "" && (u.chance(2) || u.calm):
		at.applied, at.pods = true, u.now
		if !at.mute {
			at.pods = at.pods.Add(time.Duration(u.Random.IntN(10)) * time.Minute)
		}
	case at.applied && at.has == "2" && u.Random.IntN(100) < u.bad && !u.calm:
		if !at.down {
			at.down, at.fell = true, u.now
		}
	case at.down && (u.calm || u.chance(20)):
		at.down = false
	case at.applied && u.chance(60) && !u.calm:
		at.applied, at.began = false, u.now // A webhook on the cluster, a quota.
	}
}

// install creates the add-on of a cluster.
func (u *upgrade) install(at *site) {
	u.born++
	at.addOn = fixture.AddOn(at.name)
	if at.addOn.UID = types.UID(strconv.Itoa(u.born)); u.senses.ByName {
		at.addOn.UID = types.UID(at.name)
	}
	fixture.With(at.addOn, fixture.IsTrue(addonv1beta1.ManagedClusterAddOnManifestApplied))
}

func (at *site) well(now time.Time) bool { return at.applied && !at.down && !now.Before(at.pods) }

// observe lets the hub manager record what it sees of each cluster, and judges those that get the version by it.
func (u *upgrade) observe() {
	var given []*site
	for _, at := range u.sites {
		if at.addOn == nil || u.planned && desiredOf(at.addOn) == strconv.Itoa(u.version) {
			continue // The planner wakes those whose admission changed.
		}
		u.report(at)
		before := desiredOf(at.addOn)
		progress := func(r []addonv1beta1.ConfigReference) addon.Progress {
			p := u.progress(at, r)
			if u.senses.Progress != nil {
				u.senses.Progress(&p)
			}
			return p
		}
		after := u.configurer.Rehearse(u.cma, at.addOn, u.states(), progress)
		if u.senses.Configured != nil {
			u.senses.Configured(at.addOn, after)
		}
		if at.told || desiredOf(after) == strconv.Itoa(u.version) {
			at.lacks = !at.applied || (at.lacks && u.now.Before(at.pods))
		}
		if at.addOn = after; desiredOf(after) != before {
			given = append(given, at)
			if at.began = u.now; at.late != u.version {
				at.got = u.now
			}
		}
		u.settle(at)
	}
	if len(given) > 0 {
		u.judge(given)
	}
}

// report writes the health that the agent reports, with its own clock.
func (u *upgrade) report(at *site) {
	status := metav1.ConditionTrue
	if at.down {
		status = metav1.ConditionFalse
	}
	conditions := at.addOn.Status.Conditions
	for i := range conditions {
		if conditions[i].Type == addonv1beta1.ManagedClusterAddOnConditionAvailable && conditions[i].Status == status {
			return
		}
	}
	var others []metav1.Condition
	for _, c := range conditions {
		if c.Type != addonv1beta1.ManagedClusterAddOnConditionAvailable {
			others = append(others, c)
		}
	}
	at.addOn.Status.Conditions = others
	fixture.With(at.addOn, fixture.Condition(
		addonv1beta1.ManagedClusterAddOnConditionAvailable, status, "Lease", u.now.Add(at.offset)))
}

// progress holds what the works of the references say; new ones are not applied yet.
func (u *upgrade) progress(at *site, references []addonv1beta1.ConfigReference) addon.Progress {
	want := ""
	for _, r := range references {
		want = r.DesiredConfig.SpecHash
	}
	if want != at.has {
		at.has, at.applied, at.down, at.pods = want, false, false, time.Time{}
	}
	if want == "" {
		return addon.Progress{Now: u.now}
	}
	hashes, _ := json.Marshal(confighash.Map(references)) // Strings can be encoded.
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Generation: 1, Annotations: map[string]string{names.AnnotationConfigSpecHash: string(hashes)},
	}}
	if at.applied {
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 1,
			})
		}
	}
	p := addon.Progress{Now: u.now, Works: []*workv1.ManifestWork{work}}
	if !at.mute && u.now.Before(at.pods) {
		p.RollingOut = []string{"Deployment agent"}
	}
	return p
}

// states are the hashes of the configurations: each version is an edit of the template.
func (u *upgrade) states() addonconfig.States {
	return addonconfig.States{upgraded: {Hash: strconv.Itoa(u.version)}}
}

// world holds what the planner knows. At times the decisions are being written, or the Placement is replaced.
func (u *upgrade) world() rollout.World {
	w := rollout.World{Now: u.now, CMA: u.cma, States: u.states(), Served: map[string]bool{}}
	var pages []*clusterv1beta1.PlacementDecision
	for i, group := range []string{"canary", ""} {
		page := newPage(i+1, "", group, i, u.placement)
		for _, at := range u.sites {
			if at.canary == (group == "canary") {
				page.Status.Decisions = append(page.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: at.name})
			}
		}
		pages = append(pages, page)
	}
	for _, at := range u.sites {
		if at.addOn == nil {
			w.Served[at.name] = true
			continue
		}
		w.AddOns = append(w.AddOns, at.addOn)
	}
	u.placement.Status.Conditions = []metav1.Condition{fleet.Mark(1, pages)}
	if u.torn = max(0, u.torn-1); u.chance(20) && !u.calm {
		u.torn = 1 + u.Random.IntN(4)
	}
	if u.torn > 0 {
		lost := pages[u.Random.IntN(2)]
		all := len(lost.Status.Decisions)
		lost.Status.Decisions = lost.Status.Decisions[:u.Random.IntN(all+1)]
		if u.chance(4) {
			u.placement.Status, pages = clusterv1beta1.PlacementStatus{}, pages[:1] // It was created again.
		} else if len(lost.Status.Decisions) == all {
			u.torn = 0
		}
	}
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	w.Placements = []*fleet.Decisions{fleet.NewDecisions(fleet.Seen{
		Key: key, Placement: u.placement.DeepCopy(), Pages: pages, Own: true,
	}, u.now)}
	return w
}

// desiredOf is the version that an add-on is to have.
func desiredOf(addOn *addonv1beta1.ManagedClusterAddOn) string {
	for _, r := range addOn.Status.ConfigReferences {
		return r.DesiredConfig.SpecHash
	}
	return ""
}
