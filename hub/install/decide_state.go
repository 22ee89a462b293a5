package install

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/confirmation"
	"github.com/spokelet/spokelet/internal/names"
)

// removalState is the value of annotation removal-state: what must be known after a restart.
type removalState struct {
	// Intent identifies what people had decided about placements when all that followed from it was done. A difference is
	// an edit, which explains removals.
	Intent string `json:"intent,omitempty"`
	// Edit identifies an edit that is not done, and EditSince is since when it is known, in seconds: a process that starts
	// does not take it for one of now.
	Edit      string `json:"edit,omitempty"`
	EditSince int64  `json:"editSince,omitempty"`
	// Recent is from how many clusters the add-on was removed lately without such an edit, by minute. It is left out while
	// these are few.
	Recent map[string]int `json:"recent,omitempty"`
	// Confirmed are the clusters from which a person confirmed the removal, until it is done; see digest.
	Confirmed string `json:"confirmed,omitempty"`
	// Held are the clusters whose removal waits for that.
	Held string `json:"held,omitempty"`
}

// parseState reads the annotation; what is not valid counts as absent. An intent of another format is unknown, so that
// an upgrade is not an edit.
func parseState(raw string) removalState {
	var s removalState
	if json.Unmarshal([]byte(raw), &s) != nil {
		return removalState{}
	}
	if !strings.HasPrefix(s.Intent, intentFormat) {
		s.Intent = ""
	}
	return s
}

// encode returns the value of the annotation; empty when there is nothing to know.
func (s removalState) encode() string {
	raw, err := json.Marshal(s)
	if err != nil || string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

// digestSize is how many bytes stand for a cluster in a digest: few enough for an annotation with thousands of
// clusters, and enough that no other cluster has the same.
const digestSize = 6

// digest returns a short form of a set of clusters in which each cluster can be found.
func digest(addon types.UID, clusters []string) string {
	var raw []byte
	for _, cluster := range clusters {
		raw = append(raw, digestOf(addon, cluster)...)
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

// digestOf returns what stands for a cluster in a digest.
func digestOf(addon types.UID, cluster string) string {
	sum := sha256.Sum256([]byte(string(addon) + "/" + cluster))
	return string(sum[:digestSize])
}

// digested returns the members of a digest.
func digested(encoded string) sets.Set[string] {
	members := sets.New[string]()
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return members
	}
	for part := range slices.Chunk(raw, digestSize) {
		members.Insert(string(part))
	}
	return members
}

// nameOf returns the name of a set of clusters, which are in order, for people to confirm it by.
func nameOf(addon types.UID, clusters []string) string {
	return confirmation.Name(string(addon), clusters)
}

// minuteOf is the key of an instant in Recent.
func minuteOf(at time.Time) string { return at.UTC().Truncate(time.Minute).Format(time.RFC3339) }

// recentOf returns from how many clusters an add-on was removed in each minute after an instant: those that this
// process knows of, and those that an earlier one recorded.
func recentOf(removed map[string]time.Time, earlier map[string]int, since time.Time) map[string]int {
	recent := map[string]int{}
	for minute, n := range earlier {
		if at, err := time.Parse(time.RFC3339, minute); err == nil && at.After(since) && n > 0 {
			recent[minute] += n
		}
	}
	for _, at := range removed {
		recent[minuteOf(at)]++
	}
	return recent
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// intentOf identifies what people decide about placements: which are listed, their specs, and the sets of clusters that
// are bound to their namespaces. Bindings are in the order of their names.
func intentOf(
	listed []types.NamespacedName, placements []*fleet.Decisions, bindings []*clusterv1beta2.ManagedClusterSetBinding,
	bound map[string]*clusterv1beta2.ManagedClusterSet,
) string {
	h := sha256.New()
	for i, key := range listed {
		fmt.Fprintf(h, "placement %s %s\n", key, specOf(placements[i].Placement))
	}
	for _, b := range bindings {
		fmt.Fprintf(h, "binding %s/%s %s %d %t\n", b.Namespace, b.Name, b.UID, b.Generation, b.DeletionTimestamp.IsZero())
		writeSet(h, b.Spec.ClusterSet, bound[b.Spec.ClusterSet])
	}
	const length = 8
	return intentFormat + hex.EncodeToString(h.Sum(nil)[:length])
}

// intentFormat begins what identifies an intent.
const intentFormat = "2:"

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
