package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// wholeList is the key of the intent which Placements are listed; all others have the idOf one.
const wholeList = ""

// intentFormat begins what identifies an intent.
const intentFormat = "3:"

// intentsOf identifies what people decide about each listed Placement: its spec, and the sets of clusters that are
// bound to its namespace. The bindings of a namespace are in the order of their names.
func intentsOf(
	placements []*fleet.Decisions, bindings map[string][]*clusterv1beta2.ManagedClusterSetBinding,
	bound map[string]*clusterv1beta2.ManagedClusterSet,
) map[string]string {
	var list, text bytes.Buffer
	intents := map[string]string{}
	for _, d := range placements {
		text.Reset()
		fmt.Fprintln(&text, specOf(d.Placement))
		for _, b := range bindings[d.Key.Namespace] {
			fmt.Fprintf(&text, "binding %s %s %d %t\n", b.Name, b.UID, b.Generation, b.DeletionTimestamp.IsZero())
			writeSet(&text, b.Spec.ClusterSet, bound[b.Spec.ClusterSet])
		}
		fmt.Fprintln(&list, d.Key)
		intents[idOf(d.Key)] = intentFormat + shortOf(text.Bytes())
	}
	intents[wholeList] = intentFormat + shortOf(list.Bytes())
	return intents
}

// writeSet writes what people decide about a set. The hub manager keeps some itself, which have the same clusters
// without an object.
func writeSet(w io.Writer, name string, set *clusterv1beta2.ManagedClusterSet) {
	if _, kept := clustersets.Kept(name, set); kept || set == nil {
		fmt.Fprintf(w, "set %s is absent\n", name)
		return
	}
	fmt.Fprintf(w, "set %s %s %d\n", name, set.UID, set.Generation)
}

// specOf identifies the spec of a Placement, with the annotation by which a person lets clusters without a binding go.
func specOf(placement *clusterv1beta1.Placement) string {
	if placement == nil {
		return "is absent"
	}
	return fmt.Sprintf("%s %d %s", placement.UID, placement.Generation, placement.Annotations[names.AnnotationSetBindings])
}

// edited reports whether people changed what they decide about a Placement, or which are listed, and all that follows
// from it is not done.
func (f fleetFacts) edited(key string) bool {
	done := f.state.Intents[key]
	return done != "" && done != f.intents[key].is
}

// anyEdited reports whether people changed any of that.
func (f fleetFacts) anyEdited() bool {
	for key := range f.intents {
		if f.edited(key) {
			return true
		}
	}
	return false
}

// explained reports whether an edit that counts explains why a cluster is unselected: one of the listed Placements, or
// of each Placement that dropped it. A user who edits another Placement explains nothing, for that may be another
// user's.
func (f fleetFacts) explained(c candidate, counts func(edited intent) bool) bool {
	if f.edited(wholeList) && counts(f.intents[wholeList]) {
		return true
	}
	dropped := f.droppedBy(c)
	return len(dropped) > 0 && !slices.ContainsFunc(dropped, func(key string) bool {
		return !f.edited(key) || !counts(f.intents[key])
	})
}

// droppedBy returns the ids of the Placements that may be those that dropped a cluster: all of them if this process did
// not see that. The present sets do not tell, for the cluster may have left one.
func (f fleetFacts) droppedBy(c candidate) []string {
	var may []string
	for _, d := range f.placements {
		if id := f.id(d); c.absence.mayBe(id) {
			may = append(may, id)
		}
	}
	return may
}

// addTo adds the id of a Placement to those that dropped a cluster.
func addTo(by string, placement types.NamespacedName) string {
	id := idOf(placement)
	if strings.Contains(by, id) {
		return by
	}
	return strings.TrimSpace(by + " " + id)
}

// idOf is a short form of the key of a Placement: an annotation has those of a thousand.
func idOf(placement types.NamespacedName) string { return shortOf([]byte(placement.String())) }

func shortOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:digestSize])
}

// settle takes over the edits of which all that follows is done.
func (f fleetFacts) settle(r *removals, state *removalState, waits bool) {
	if f.limit.Percent == 0 {
		*state = removalState{}
		return
	}
	before := *state
	state.Intents, state.Edits = map[string]string{}, map[string]edit{}
	for _, key := range slices.Sorted(maps.Keys(f.intents)) {
		is := f.intents[key]
		state.Intents[key] = before.Intents[key]
		if state.Intents[key] == "" {
			state.Intents[key] = is.is
		}
		var pending *edit
		if !f.edited(key) {
			pending = is.takenBack(r, before.Edits[key], f.now)
		} else if f.settleOne(r, is, waits || f.unfit(key)) {
			state.Intents[key] = is.is
		} else {
			pending = &edit{is.is, is.since.Unix()}
		}
		if pending != nil {
			state.Edits[key] = *pending
		}
	}
}

// settleOne reports whether all that follows from an edit is done. It says when to look again if not.
func (f fleetFacts) settleOne(r *removals, is intent, waits bool) bool {
	until := is.since.Add(removalPeriod)
	switch {
	case f.now.Before(until):
		r.wake = reconcile.Earliest(r.wake, until)
		return false
	case waits: // No event need come when that changes: it is the business of a pass only while something is unselected.
		r.wake = reconcile.Earliest(r.wake, f.now.Add(removalPeriod))
		return false
	}
	return true
}

// takenBack returns an edit that was taken back, until it is forgotten, so that the same is an edit again when it is
// made later. A cache that lacks an edit for a moment makes it no edit of now.
func (i intent) takenBack(r *removals, was edit, now time.Time) *edit {
	if was.To == "" {
		return nil
	}
	until := i.since.Add(removalPeriod)
	if at := time.Unix(was.Since, 0); at.After(i.since) {
		until = at.Add(removalPeriod)
	}
	if !now.Before(until) {
		return nil
	}
	r.wake = reconcile.Earliest(r.wake, until)
	return &was
}
