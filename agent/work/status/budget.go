package status

import (
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Bounds of the status of a work, in bytes of JSON. The API server accepts no object above 1.5 MiB, and refuses the
// whole status for one message too many.
const (
	// maxForHub is how much text one status has at most: feedback values and messages.
	maxForHub = 512 << 10
	// maxObject is how large a work with its status may become; minForHub is how much text the status may have even in a
	// larger work.
	maxObject, minForHub = 1300 << 10, 64 << 10
	// perManifest is the size that the status of a manifest takes besides its text.
	perManifest = 1 << 10
	// maxEncoded is how many bytes a byte of text takes at most.
	maxEncoded = len(`\u0000`)
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

// valueSize is the size that a feedback value takes in the status.
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

// withinBounds drops the values and shortens the messages for which there is no room any more, with a note in their
// place.
func withinBounds(objects []Object, room int) []Object {
	const (
		entry   = 100 // the size of a condition besides its text
		tooMuch = "the values of this work are too many or too long for its status"
	)
	out := slices.Clone(objects)
	for i := range out {
		if out[i].Feedback == nil {
			continue
		}
		f := *out[i].Feedback
		values := f.Values
		f.Values = slices.DeleteFunc(slices.Clone(values), func(v workv1.FeedbackValue) bool {
			size := valueSize(v)
			if size > room {
				return true
			}
			room -= size
			return false
		})
		if len(f.Values) < len(values) {
			f.Err = strings.TrimPrefix(f.Err+", "+tooMuch, ", ")
		}
		f.Conditions = slices.Clone(f.Conditions)
		for j := range f.Conditions {
			c := &f.Conditions[j]
			if size := entry + len(c.Type) + encodedSize(c.Message); size > room {
				c.Message = "the message is left out: " + tooMuch
			} else {
				room -= size
			}
		}
		out[i].Feedback = &f
	}
	return out
}
