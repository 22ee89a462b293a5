package work

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Bounds of the status of a work, in bytes of JSON. The API server takes no object above 1.5 MiB, and refuses the whole
// status with one message too many, for as long as that is so.
const (
	// maxForHub is how much text one status has at most: feedback values and messages.
	maxForHub = 512 << 10
	// maxObject is how large a work gets with its status, as far as it is up to the status; minForHub is how much text
	// the status has even then.
	maxObject, minForHub = 1300 << 10, 64 << 10
	// perManifest is what the status of a manifest takes besides its text.
	perManifest = 1 << 10
	// maxEncoded is what a byte of text takes at most.
	maxEncoded = len(`\u0000`)
	// maxCause is how much of the message of a manifest the conditions of the work quote.
	maxCause = 1 << 10
)

// roomFor is how much text the status of a work may have.
func roomFor(work *workv1.ManifestWork) int {
	size := 0
	for i := range work.Spec.Workload.Manifests {
		size += len(work.Spec.Workload.Manifests[i].Raw) + perManifest
	}
	return max(min(maxForHub, maxObject-size), minForHub)
}

// valuesShare is how much of the room for text the feedback values may take; the messages have what they leave.
func valuesShare(room int) int { return room / 4 * 3 }

// fitMessages shortens the longest messages of a status to one length, so that they fit into the room that the feedback
// values leave.
func fitMessages(status *workv1.ManifestWorkStatus, room int) {
	var messages []*string
	collect := func(conditions []metav1.Condition) {
		for i := range conditions {
			messages = append(messages, &conditions[i].Message)
		}
	}
	collect(status.Conditions)
	for i := range status.ResourceStatus.Manifests {
		m := &status.ResourceStatus.Manifests[i]
		collect(m.Conditions)
		for _, v := range m.StatusFeedbacks.Values {
			room -= valueSize(v)
		}
	}
	sizes, plain := make([]int, len(messages)), 0
	for _, message := range messages {
		plain += len(*message)
	}
	if plain*maxEncoded <= room {
		return // nearly always, and without a look at each character
	}
	for i := range messages {
		sizes[i] = encodedSize(*messages[i])
	}
	limit := fairShare(sizes, room)
	for i := range messages {
		if sizes[i] > limit {
			*messages[i] = cutEncoded(*messages[i], limit)
		}
	}
}

// fairShare is the largest size such that all together fit into the room when none of them is larger.
func fairShare(sizes []int, room int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, size := range sizes {
		if share := max(room, 0) / (len(sizes) - i); size > share {
			return share
		}
		room -= size
	}
	return max(room, maxMessage)
}

// valueSize is what a feedback value takes in the status.
func valueSize(v workv1.FeedbackValue) int {
	const entry = 100 // what it takes besides its text
	return entry + encodedSize(v.Name) + encodedSize(ptr.Deref(v.Value.String, "")) +
		encodedSize(ptr.Deref(v.Value.JsonRaw, ""))
}

// encodedSize is how much a text takes in JSON, as the API server writes it.
func encodedSize(text string) int {
	size := 0
	for _, r := range text {
		size += encodedRune(r)
	}
	return size
}

// encodedRune is how much a character takes at most.
func encodedRune(r rune) int {
	switch r {
	case '"', '\\':
		return len(`\"`)
	case '<', '>', '&', '\u007f', '\u2028', '\u2029', utf8.RuneError:
		return maxEncoded
	}
	if r < ' ' {
		return maxEncoded
	}
	return utf8.RuneLen(r)
}

// cutEncoded shortens a text to what it may take in JSON.
func cutEncoded(text string, limit int) string {
	const more = "..."
	size := len(more)
	for at, r := range text {
		if size += encodedRune(r); size > limit {
			return text[:at] + more
		}
	}
	return text
}

// firstWith quotes the first manifest of which a condition has the status: its place, what it is, and why.
func firstWith(list []workv1.ManifestCondition, name string, status metav1.ConditionStatus) string {
	for i := range list {
		c := meta.FindStatusCondition(list[i].Conditions, name)
		if c == nil || c.Status != status {
			continue
		}
		why := c.Message
		applied := meta.FindStatusCondition(list[i].Conditions, workv1.ManifestApplied)
		if status == metav1.ConditionFalse && applied != nil && applied.Status == metav1.ConditionFalse {
			why = applied.Message // that says also why the object does not exist
		}
		what := list[i].ResourceMeta
		return fmt.Sprintf("manifest %d%s: %s", what.Ordinal, inWords(what), cut(why, maxCause))
	}
	return ""
}

// inWords names the object of a manifest, as far as it is known, after the place of the manifest.
func inWords(m workv1.ManifestResourceMeta) string {
	if m.Kind == "" {
		return ""
	}
	return " (" + manifestName(m) + ")"
}
