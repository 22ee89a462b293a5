package install

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// removalPeriod is what "at once" means for the limit of removals, and how long an edit explains the removals after it.
const removalPeriod = 15 * time.Minute

const (
	// decidedPeriod is how long a Placement that is being decided is left alone.
	decidedPeriod = 10 * time.Second
	// passPeriod is more than a pass of the built-in placement takes that does not fail.
	passPeriod = 5 * time.Second
	// unknownPeriod is how often it is asked whether it has become known that a cluster is selected.
	unknownPeriod = time.Minute
)

// editedSince reports whether an edit since a cluster came back explains why it is unselected, or people edited a
// Placement that another program schedules since then. The latter counts where no limit lets us record what people
// decide.
func (f fleetFacts) editedSince(c candidate) bool {
	return f.explained(c, func(edited intent) bool { return !edited.since.Before(c.absence.available) }) ||
		(f.limit.Percent == 0 && slices.ContainsFunc(c.concerned, func(d *fleet.Decisions) bool {
			return !d.Own && d.Placement != nil && fleet.LastEdited(d.Placement).After(c.absence.available)
		}))
}

// unfit reports whether the decisions of a placement mean nothing now, or with wholeList those of any.
func (f fleetFacts) unfit(key string) bool {
	return slices.ContainsFunc(f.placements, func(d *fleet.Decisions) bool {
		return isUnfit(d) && (key == wholeList || f.id(d) == key)
	})
}

func isUnfit(d *fleet.Decisions) bool { return d.Unfit != nil }

func (f fleetFacts) isHeld() bool { return f.cma.GetAnnotations()[names.AnnotationRemovalHeld] != "" }

// decideRemovals returns from which clusters an add-on is removed now.
func decideRemovals(f fleetFacts) removals {
	r := removals{concerned: sets.New[*fleet.Decisions]()}
	f.ids = make(map[*fleet.Decisions]string, len(f.placements))
	for _, d := range f.placements {
		f.ids[d] = idOf(d.Key)
	}
	var sure, doubted []candidate
	isUnknown, blocked, held := false, false, f.members(f.state.Held)
	// An earlier version did not note which clusters were held.
	f.held = func(c candidate) bool { return held(c) || (f.isHeld() && f.state.Held == "") }
	for _, c := range f.candidates {
		c.concerned, c.fewer = f.concerned(c)
		wake, done, err := f.judge(c)
		blocked = blocked || (!done && slices.ContainsFunc(c.concerned, isUnfit))
		why := unknown(c.concerned, f.unjudged, c.cluster)
		switch {
		case done:
			r.done = append(r.done, c.cluster)
			continue
		case c.unread: // It keeps its add-on, and an event tells when it can be decoded.
		case why != nil:
			r.kept, isUnknown = append(r.kept, why.Error()), true
		case err == nil && len(c.others.Bring) > 0:
			r.relabel = append(r.relabel, c)
			r.concerned.Insert(c.concerned...)
			continue
		case err == nil:
			sure, r.scoped = append(sure, c), r.scoped || len(c.concerned) < len(f.placements)
			r.concerned.Insert(c.concerned...)
			continue
		case wake.IsZero() && !isClosed(err):
			r.kept = append(r.kept, err.Error())
		default:
			r.wake = reconcile.Earliest(r.wake, wake)
		}
		r.later(err)
		if f.counts(c) && f.held(c) {
			doubted = append(doubted, c)
		}
	}
	f.keep(&r)
	waits := !r.wake.IsZero() || len(sure) > 0 || len(doubted) > 0 || blocked
	f.guard(&r, sure, doubted)
	state := f.state
	state.Recent = f.recentAfter(r)
	state.Held = digest(f.cma.GetUID(), r.held)
	if r.confirmed {
		state.Confirmed = digest(f.cma.GetUID(), clustersOf(slices.Concat(sure, doubted)))
	} else {
		state.Confirmed = f.stillConfirmed(r.done)
	}
	f.settle(&r, &state, waits)
	r.annotations = f.annotate(r, state, waits)
	if isUnknown { // Nothing that a pass of the placement writes need tell when it is known. Nobody else waits for that.
		r.wake = reconcile.Earliest(r.wake, f.now.Add(unknownPeriod))
	}
	return r
}

// keep adds the reasons that are told once for all clusters, and orders them.
func (f fleetFacts) keep(r *removals) {
	for key, undecided := range f.undecided {
		since := undecided.Since
		if since.IsZero() {
			since = f.intents[idOf(key)].since // This process has not decided at all.
		}
		if len(f.candidates) > len(r.done) && f.now.Sub(since) > fleet.FailoverPeriod {
			r.kept = append(r.kept, undecided.Why.Error()+", which does not come to an end")
		}
	}
	if r.closed != nil {
		r.kept = append(r.kept, r.closed.Error())
	}
	slices.Sort(r.kept)
	r.kept = slices.Compact(r.kept)
}

// recentAfter returns what must be known after a restart of removals that no edit explains, with those that follow from
// a decision: a process that ends meanwhile records nothing. It is nil while they are few.
func (f fleetFacts) recentAfter(r removals) map[string]int {
	recent := maps.Clone(f.recent)
	if n := len(r.counted); n > 0 {
		if recent == nil {
			recent = map[string]int{}
		}
		recent[minuteOf(f.now)] += n
	}
	if sum(recent) <= f.limit.Clusters {
		return nil
	}
	return recent
}

// members returns whether a cluster is in a digest.
func (f fleetFacts) members(encoded string) func(candidate) bool {
	all := digested(encoded)
	return func(c candidate) bool { return all.Has(digestOf(f.cma.GetUID(), c.cluster)) }
}

// unknown returns why it is unknown whether one of some placements selects a cluster, with the same words for each
// cluster; nil when it is known.
func unknown(
	placements []*fleet.Decisions, unjudged map[types.NamespacedName]map[string]bool, cluster string,
) error {
	for _, d := range placements {
		if unjudged[d.Key][cluster] {
			return fmt.Errorf("placement %s cannot tell whether it selects some of the clusters, as its expressions cost too "+
				"much for them, or as they cannot be decoded", d.Key)
		}
	}
	return nil
}

// errUnread is why an add-on stays of which nothing is known.
var errUnread = errors.New("the add-on or its cluster cannot be decoded")

// judge returns why the add-on on a cluster stays, and the instant to check again, zero when an event starts the next
// pass; or that there is nothing to remove.
func (f fleetFacts) judge(c candidate) (wake time.Time, done bool, why error) {
	switch {
	case f.selects(c.cluster):
		return time.Time{}, true, nil
	case c.unread:
		return time.Time{}, false, errUnread
	case c.addon == nil, !c.addon.GetDeletionTimestamp().IsZero():
		return time.Time{}, true, nil
	}
	if !isOurs(c.addon) {
		manager := installedBy(c.addon)
		if manager == "" {
			return time.Time{}, true, nil
		}
		return time.Time{}, false, fmt.Errorf("they were installed by %s before this hub manager looked after them, and no "+
			"placement has selected the cluster since; delete them, or label them %s=%s", manager, names.LabelInstalledBy,
			names.InstalledByPlacement)
	}
	switch {
	case !isBrought(c.addon):
		if len(f.placements) == 0 && !addonapi.StrategyOf(f.cma).ByPlacements { // What placements installed stays then.
			return time.Time{}, true, nil
		}
	case len(c.others.Bring) > 0:
		return time.Time{}, true, nil
	default:
		if why := f.keepsBrought(); why != nil {
			return time.Time{}, false, why
		}
	}
	if wake, why := admitted(c, f.now); why != nil {
		return wake, false, why
	}
	if wake, why = f.decided(c); why != nil {
		return reconcile.Earliest(wake, c.fewer), false, why
	}
	if len(f.placements) == 0 || len(c.concerned) > 0 { // Otherwise it is not unselected because it is away.
		if wake, why = reachable(c, f.editedSince(c), f.now); why != nil {
			return reconcile.Earliest(wake, c.fewer), false, why
		}
	}
	wake, why = f.goesLater(c)
	return wake, false, why
}

// decided returns why the Placements that concern a cluster may select it, and the instant to check again, zero when an
// event starts the next pass.
func (f fleetFacts) decided(c candidate) (wake time.Time, why error) {
	for _, d := range c.concerned {
		at, err := d.Unselected(c.cluster, f.now)
		if undecided, is := f.undecided[d.Key]; err == nil && is && f.holds(c, undecided) {
			at, err = f.now.Add(decidedPeriod), undecided.Why
		}
		if err != nil && at.IsZero() {
			return time.Time{}, err
		}
		wake, why = reconcile.Earliest(wake, at), errors.Join(why, err)
	}
	return wake, why
}

// holds reports whether a Placement that is being decided holds the removal from a cluster: passes fail, or none has
// looked at the cluster since it changed, or what concerns all of them. A user who changes another cluster all the time
// holds nothing.
func (f fleetFacts) holds(c candidate, u fleet.Undecided) bool {
	return u.Since.IsZero() || f.now.Sub(u.Since) > passPeriod || u.Touches(c.cluster)
}

// counts reports whether the removal from a cluster counts for the limit: an edit explains what it drops, and one whose
// removals do not come to an end explains no later ones. An edit explains nothing that was held before: a user who
// repairs a Placement does not confirm what it did, and what follows may be the work of others.
func (f fleetFacts) counts(c candidate) bool {
	// What another add-on brought along goes with it, whose own removal was one that counts.
	follows := !c.unread && isBrought(c.addon) && c.absence.follows
	return c.counts() && !follows && (f.held(c) || !f.explained(c, func(edited intent) bool {
		return !c.absence.noted.After(edited.since.Add(removalPeriod))
	}))
}

// stillConfirmed returns the confirmed clusters that are not done.
func (f fleetFacts) stillConfirmed(done []string) string {
	if f.state.Confirmed == "" {
		return ""
	}
	confirmed, isDone := f.members(f.state.Confirmed), sets.New(done...)
	return digest(f.cma.GetUID(), clustersOf(slices.DeleteFunc(slices.Clone(f.candidates), func(c candidate) bool {
		return isDone.Has(c.cluster) || !confirmed(c)
	})))
}

// guard decides which of the add-ons that are surely unselected are removed, and which are held. What was held stays so
// while it cannot be removed anyway, whatever the reason. Where no more than that is held, other removals go on.
func (f fleetFacts) guard(r *removals, sure, doubted []candidate) {
	confirmed := f.members(f.state.Confirmed)
	counted := slices.DeleteFunc(slices.Clone(sure), func(c candidate) bool { return !f.counts(c) || confirmed(c) })
	doubted = slices.DeleteFunc(slices.Clone(doubted), confirmed)
	r.remove = sure
	if f.limit.Percent == 0 || len(counted)+len(doubted) == 0 {
		return
	}
	r.counted = sets.New(clustersOf(counted)...)
	exceeded := f.limit.exceeded(sum(f.recent)+len(counted), f.size+sum(f.recent))
	fresh := f.state.Held != "" && !slices.ContainsFunc(counted, f.held)
	held := slices.Concat(counted, doubted)
	switch {
	case !exceeded && !f.isHeld():
		return
	case !exceeded && fresh:
		held = doubted
	}
	all := clustersOf(held)
	slices.Sort(all)
	if len(all) > 0 && f.cma.GetAnnotations()[names.AnnotationConfirmRemoval] == nameOf(f.cma.GetUID(), all) {
		r.confirmed, r.counted = true, nil
		return
	}
	r.held = all
	isHeld := sets.New(all...)
	r.remove = slices.DeleteFunc(slices.Clone(sure), func(c candidate) bool { return isHeld.Has(c.cluster) })
	r.counted = r.counted.Difference(isHeld)
}

// annotate returns the annotations of the ClusterManagementAddOn. While it is uncertain what is unselected, what is
// held stays so.
func (f fleetFacts) annotate(r removals, state removalState, waits bool) map[string]string {
	want := map[string]string{}
	for key, value := range f.cma.GetAnnotations() {
		want[key] = value
	}
	put(want, names.AnnotationRemovalState, state.encode())
	switch {
	case len(r.held) > 0:
		want[names.AnnotationRemovalHeld] = f.heldText(r.held)
	case r.confirmed, !waits, len(r.remove) > 0:
		delete(want, names.AnnotationRemovalHeld)
		delete(want, names.AnnotationConfirmRemoval)
	}
	return want
}

// heldText explains why a removal is held, and how to confirm it.
func (f fleetFacts) heldText(held []string) string {
	const most = 5
	// The text is the same whatever becomes of other clusters, and of what is known about these.
	why := "placements stopped selecting %d clusters, and no edit of a Placement, of the listed placements or of a " +
		"ManagedClusterSet explains it"
	switch {
	case len(f.placements) == 0:
		why = "no AddOnPolicy brings it to %d clusters any more"
	case f.others.brings:
		why = "no placement selects, and no AddOnPolicy brings it to, %d clusters any more, and no edit explains it"
	}
	text := fmt.Sprintf(why+": %s. The add-on stays there. To remove it from exactly these clusters, set "+
		"annotation %s=%s on this ClusterManagementAddOn",
		len(held), message.List(held, most, ", "), names.AnnotationConfirmRemoval, nameOf(f.cma.GetUID(), held))
	if given := f.cma.GetAnnotations()[names.AnnotationConfirmRemoval]; given != "" {
		text += fmt.Sprintf("; %s was for other clusters", given)
	}
	return text
}

// abandon returns the annotations of a ClusterManagementAddOn whose add-ons no placements install.
func abandon(annotations map[string]string) map[string]string {
	want := map[string]string{}
	for key, value := range annotations {
		switch key {
		case names.AnnotationRemovalHeld, names.AnnotationConfirmRemoval, names.AnnotationRemovalState:
		default:
			want[key] = value
		}
	}
	return want
}

func put(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
		return
	}
	annotations[key] = value
}

func clustersOf(candidates []candidate) []string {
	clusters := make([]string, len(candidates))
	for i, c := range candidates {
		clusters[i] = c.cluster
	}
	return clusters
}
