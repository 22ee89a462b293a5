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

// Report says which works are missing whose objects are held, and how to have these evicted; empty when there are none.
func Report(f Facts, fates map[string]Fate) string {
	var held []string
	var last time.Time
	for _, w := range f.Works {
		if fates[w.Name] != Held {
			continue
		}
		held = append(held, w.Name)
		if w.Since.After(last) {
			last = w.Since
		}
	}
	if len(held) == 0 {
		return ""
	}
	slices.Sort(held)
	wrong := ""
	if f.Wrong != "" {
		wrong = fmt.Sprintf("; %q is not an instant", message.Cut(f.Wrong, maxWrong))
	}
	return fmt.Sprintf("the hub does not have %d of the %d works that this cluster applied, and the agent did not see "+
		"that they were deleted: %s. Their objects stay. If the hub was restored from a backup, create the works again; "+
		"they take their objects over. To have the objects deleted, set annotation %s=%s on the ManagedCluster%s",
		len(held), f.Known, message.List(held, maxNamed, ", "), names.AnnotationConfirmEviction, Instant(last), wrong)
}

// Instant is how an instant is written that a person confirms.
func Instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
