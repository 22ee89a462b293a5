package install

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/spokelet/spokelet/internal/confirmation"
)

// parseState reads the annotation; what is not valid counts as absent. An intent of another format is unknown, so that
// an upgrade is not an edit.
func parseState(raw string) removalState {
	var s removalState
	if json.Unmarshal([]byte(raw), &s) != nil {
		return removalState{}
	}
	maps.DeleteFunc(s.Intents, func(_, intent string) bool { return !strings.HasPrefix(intent, intentFormat) })
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
