package missing

import (
	"fmt"
	"slices"
	"time"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// maxNamed is how many works a report names.
const maxNamed = 10

// maxWrong is how many bytes of a wrong confirmation a report quotes.
const maxWrong = 50

// Report says which works are missing whose objects are held, which are older than what was applied, and how to have
// the objects deleted; empty when there are none.
func Report(f Facts, fates map[string]Fate) string {
	lost, older := f.held(fates)
	var text string
	if len(lost) > 0 {
		text = fmt.Sprintf("the hub does not have %d of the %d works that this cluster applied, and the agent did not see "+
			"that they were deleted: %s. Their objects stay. If the hub was restored from a backup, create the works again; "+
			"they take their objects over. ", len(lost), f.Known, list(lost))
	}
	if len(older) > 0 {
		text += fmt.Sprintf("the hub has an older content of %d works than this cluster applied: %s. The objects that only "+
			"the newer content has stay. If the hub was restored from a backup, write the newer content again; it takes "+
			"these objects over. ", len(older), list(older))
	}
	if text == "" {
		return ""
	}
	wrong := ""
	if f.Wrong != "" {
		wrong = fmt.Sprintf("; %q is not an instant", message.Cut(f.Wrong, maxWrong))
	}
	return text + fmt.Sprintf("To have the objects deleted, set annotation %s=%s on the ManagedCluster%s",
		names.AnnotationConfirmEviction, Instant(latest(slices.Concat(lost, older))), wrong)
}

// held returns the works that are missing whose objects are held, and those that are older.
func (f Facts) held(fates map[string]Fate) (lost, older []Work) {
	for _, w := range f.Works {
		if fates[w.Name] == Held {
			lost = append(lost, w)
		}
	}
	for _, w := range f.Older {
		if !f.Confirms(w.Since) {
			older = append(older, w)
		}
	}
	return lost, older
}

// list names works.
func list(works []Work) string {
	named := make([]string, len(works))
	for i, w := range works {
		named[i] = w.Name
	}
	slices.Sort(named)
	return message.List(named, maxNamed, ", ")
}

// latest is the instant of the last one of works.
func latest(works []Work) time.Time {
	var last time.Time
	for _, w := range works {
		if w.Since.After(last) {
			last = w.Since
		}
	}
	return last
}

// Instant is how an instant is written that a person confirms.
func Instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
