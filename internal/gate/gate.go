package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // The image of the hub manager has no files with time zones.

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/windows"
)

const (
	// maxReason is how many bytes of the reason of a pause are told, and maxNames how many windows.
	maxReason, maxNames = 200, 3
	// claimPeriod is how long a removal goes by the time zone of a claim: a weekly window has come twice then.
	claimPeriod = 14 * 24 * time.Hour
	// instantFormat is how an instant is told.
	instantFormat = time.RFC3339
)

// Cluster is what windows know of a cluster.
type Cluster struct {
	// Labels are those of the ManagedCluster, and Claims the values of its claims by their names.
	Labels map[string]string
	Claims map[string]string
	// Unknown is set for a cluster that exists and cannot be decoded.
	Unknown bool
	// Before has the dependencies of the add-on on the cluster by their names.
	Before map[string]State
	// utc is set where UTC stands for a claim of a time zone that cannot be used, and always where it stands for any.
	utc, always bool
}

// Gate has the policy and the windows of one add-on. The zero value is open.
type Gate struct {
	policy *policies.AddOnPolicy
	// before are the add-ons that come before it, and problem is why that cannot be followed.
	before  dependencies
	problem string
	// all are the windows of the add-on. Those whose selector asks for a label are in of, by one such label.
	all []*window
	of  map[string][]*window
	// unknown is why it is not known which windows there are; empty where it is.
	unknown string
	// judged are the verdicts of an instant by the windows that select a cluster, with their time zones: most clusters
	// have the same.
	judged *judged
	// wave is the wave that Judge is asked about; see In.
	wave Wave
}

type judged struct {
	at time.Time
	by map[string]Verdict
}

// window is a window with what was parsed of it.
type window struct {
	name     string
	spec     *policies.MaintenanceWindowSpec
	selector labels.Selector
	// problem is why it cannot be used on any cluster.
	problem string
	// parsed are the windows by time zone.
	parsed map[string]parsed
}

type parsed struct {
	window windows.Window
	err    error
}

// New returns the gate of an add-on. policy may be nil; of the windows, those count that are for the add-on.
func New(addOn string, policy *policies.AddOnPolicy, all []policies.MaintenanceWindow) Gate {
	g := Gate{policy: policy, of: map[string][]*window{}, judged: &judged{}}
	var own []*policies.MaintenanceWindow
	count := map[string]int{}
	for i := range all {
		w := &all[i]
		if !w.Spec.IsFor(addOn) {
			continue
		}
		own = append(own, w)
		for key, value := range w.Spec.ClusterSelector.MatchLabels {
			count[key+"="+value]++
		}
	}
	for _, w := range own {
		one := newWindow(w)
		if label, asks := labelOf(&w.Spec.ClusterSelector, count); asks && one.problem == "" {
			g.of[label] = append(g.of[label], one)
			continue
		}
		g.all = append(g.all, one)
	}
	return g
}

func newWindow(w *policies.MaintenanceWindow) *window {
	one := &window{name: w.Name, spec: &w.Spec, selector: labels.Everything(), parsed: map[string]parsed{}}
	selector, err := metav1.LabelSelectorAsSelector(&w.Spec.ClusterSelector)
	if err != nil {
		one.problem = "its clusterSelector: " + err.Error()
		return one
	}
	one.selector = selector
	return one
}

// labelOf returns a label that every cluster has which a selector selects: of several the one that the fewest windows
// ask for.
func labelOf(s *metav1.LabelSelector, count map[string]int) (string, bool) {
	best, found := "", false
	for key, value := range s.MatchLabels {
		label := key + "=" + value
		if !found || cmp.Or(cmp.Compare(count[label], count[best]), cmp.Compare(label, best)) < 0 {
			best, found = label, true
		}
	}
	return best, found
}

// Open reports whether nothing holds any cluster, ever.
func (g Gate) Open() bool {
	return !g.HasWindows() && !g.Depends() && (g.policy == nil || g.policy.Spec.Paused == nil && !g.approves())
}

// HasWindows reports whether Judge needs to know labels and claims of the cluster.
func (g Gate) HasWindows() bool { return len(g.all)+len(g.of) > 0 || g.unknown != "" }

// Policy returns the policy of the add-on; nil for none.
func (g Gate) Policy() *policies.AddOnPolicy { return g.policy }

// Verdict says whether a cluster may begin to change.
type Verdict struct {
	// Held is what it waits for; empty when it may begin.
	Held string
	// Wake is when that may change by itself; zero for never.
	Wake time.Time
	// Unusable reports that a window cannot be used on the cluster, whose agent may write the claim, that the cluster
	// cannot be decoded, or that a dependency is missing or broken there: nobody knows for how long.
	Unusable bool
	// Depends reports that Held is a dependency.
	Depends bool
}

// Judge decides about a cluster and a content, by the name of ContentName.
func (g Gate) Judge(c Cluster, content string, now time.Time) Verdict {
	switch {
	case g.policy == nil:
	case g.policy.Spec.Paused != nil:
		return g.pause()
	case g.approves() && !g.Approved(content):
		return held(fmt.Sprintf("AddOnPolicy %s does not approve content %s%s", g.policy.Name, g.NameOf(content), g.inWave()))
	}
	if v := g.judgeDependencies(c, now); v.Held != "" || !g.HasWindows() {
		return v
	}
	return g.judgeWindows(c, now)
}

// pause is the verdict of a policy that is paused.
func (g Gate) pause() Verdict {
	why := "AddOnPolicy " + g.policy.Name + " is paused"
	if reason := message.OneLine(message.Cut(g.policy.Spec.Paused.Reason, maxReason)); reason != "" {
		why += ": " + reason
	}
	return held(why)
}

// JudgeRemoval decides whether the add-on may go now from a cluster that no placement selects any more, since an
// instant, or nobody knows since when. Held has the reason alone. Where the claim of a time zone cannot be used, UTC
// counts, and after claimPeriod whatever it says: an agent keeps no add-on for ever by it.
func (g Gate) JudgeRemoval(c Cluster, since, now time.Time) Verdict {
	if g.policy == nil || g.policy.Spec.Removals != policies.RemovalsInWindows || !g.HasWindows() {
		return Verdict{}
	}
	until := since.Add(claimPeriod)
	c.utc, c.always = true, !since.IsZero() && !now.Before(until)
	v := g.judgeWindows(c, now)
	if v.Held != "" && !since.IsZero() && !c.always {
		v.Wake = reconcile.Earliest(v.Wake, until)
	}
	v.Held = strings.TrimPrefix(v.Held, causes.WaitsForTurn)
	return v
}

func held(why string) Verdict { return Verdict{Held: causes.WaitsForTurn + why} }

// judgeWindows decides by the windows that select a cluster.
func (g Gate) judgeWindows(c Cluster, now time.Time) Verdict {
	if g.unknown != "" {
		return held(g.unknown)
	}
	if c.Unknown {
		verdict := held("its ManagedCluster cannot be decoded, so it is not known which MaintenanceWindows are for it")
		verdict.Unusable = true
		return verdict
	}
	var usable []windows.Window
	var key strings.Builder
	for _, w := range g.selecting(c) {
		one, err := w.on(c)
		if err != nil {
			verdict := held(fmt.Sprintf("MaintenanceWindow %s cannot be used: %v", w.name, err))
			verdict.Unusable = w.problem == "" && w.spec.TimeZoneClaim != ""
			return verdict
		}
		usable = append(usable, one)
		fmt.Fprintf(&key, "%s@%s,", w.name, w.zone(c))
	}
	if !g.judged.at.Equal(now) {
		*g.judged = judged{at: now, by: map[string]Verdict{}}
	}
	verdict, known := g.judged.by[key.String()]
	if !known {
		verdict = verdictOf(windows.Judge(usable, now))
		g.judged.by[key.String()] = verdict
	}
	return verdict
}

// verdictOf says what windows decide.
func verdictOf(v windows.Verdict) Verdict {
	if v.Open {
		return Verdict{Wake: v.Changes}
	}
	why := "no MaintenanceWindow allows it now"
	if len(v.By) > 0 {
		why = "MaintenanceWindow " + message.List(v.By, maxNames, ", ") + " denies it"
	}
	if v.Opens.IsZero() {
		why += ", and it is not known when it may begin"
	} else {
		why += "; it may begin at " + v.Opens.UTC().Format(instantFormat)
	}
	verdict := held(why)
	verdict.Wake = v.Changes
	return verdict
}

// selecting returns the windows that select a cluster, by name.
func (g Gate) selecting(c Cluster) []*window {
	var all []*window
	add := func(some []*window) {
		for _, w := range some {
			if w.selector.Matches(labels.Set(c.Labels)) {
				all = append(all, w)
			}
		}
	}
	add(g.all)
	if len(g.of) > 0 {
		for key, value := range c.Labels {
			add(g.of[key+"="+value])
		}
	}
	slices.SortFunc(all, func(a, b *window) int { return strings.Compare(a.name, b.name) })
	return all
}

// zone returns the name of the time zone of the window on a cluster.
func (w *window) zone(c Cluster) string {
	if w.spec.TimeZoneClaim == "" {
		return w.spec.TimeZone
	}
	zone := c.Claims[w.spec.TimeZoneClaim]
	if _, err := locate(zone); c.always || c.utc && (zone == "" || err != nil) {
		return "UTC"
	}
	return zone
}

// on returns the window by the clock of a cluster.
func (w *window) on(c Cluster) (windows.Window, error) {
	if w.problem != "" {
		return windows.Window{}, errors.New(w.problem)
	}
	zone := w.zone(c)
	if claim := w.spec.TimeZoneClaim; claim != "" && zone == "" {
		return windows.Window{}, fmt.Errorf("the cluster has no claim %s, which is to name its time zone", claim)
	}
	known, has := w.parsed[zone]
	if !has {
		known.window, known.err = parse(w, zone)
		w.parsed[zone] = known
	}
	return known.window, known.err
}

func parse(w *window, zone string) (windows.Window, error) {
	spec := windows.Spec{
		Name: w.name, Kind: windows.Kind(w.spec.Kind), Schedule: w.spec.Schedule, Duration: w.spec.Duration.Duration,
	}
	if w.spec.Until != nil {
		spec.Until = w.spec.Until.Time
	}
	var err error
	if spec.Location, err = locate(zone); err != nil {
		return windows.Window{}, err
	}
	return windows.Parse(spec)
}

// locate returns a time zone. The zone of the machine is not one: two replicas may differ in it.
func locate(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil || strings.EqualFold(zone, "local") {
		return nil, fmt.Errorf("%s is not the name of a time zone, such as Europe/Berlin", message.Quote(zone))
	}
	return location, nil
}

// Report returns the status of a window on the clusters of a hub, and when that changes by itself; zero for never.
func Report(of *policies.MaintenanceWindow, clusters []Cluster, now time.Time,
) (status policies.MaintenanceWindowStatus, wake time.Time) {
	w := newWindow(of)
	status = policies.MaintenanceWindowStatus{ObservedGeneration: of.Generation, Problem: w.problem}
	zones := map[string]bool{}
	var next time.Time
	for _, c := range clusters {
		if w.problem != "" || !w.selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		status.Clusters++
		zone := w.zone(c)
		if zones[zone] {
			continue
		}
		zones[zone] = true
		usable, err := w.on(c)
		if err != nil {
			if said := err.Error(); status.Problem == "" || said < status.Problem {
				status.Problem = said
			}
			continue
		}
		state := usable.At(now)
		status.Active = status.Active || state.Active
		wake = reconcile.Earliest(wake, state.Changes)
		switch {
		case !state.Active:
			next = reconcile.Earliest(next, state.Changes)
		case !state.Endless:
			next = reconcile.Earliest(next, usable.Next(state.Changes))
		}
	}
	if status.Problem == "" { // Also where it selects no cluster, or claims name the time zones.
		if _, err := parse(w, w.spec.TimeZone); err != nil {
			status.Problem = err.Error()
		}
	}
	if !next.IsZero() {
		status.NextStart = &metav1.Time{Time: next}
	}
	return status, wake
}
