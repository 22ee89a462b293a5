package missing

import (
	"fmt"
	"slices"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// maxNamed is how many works a report names.
const maxNamed = 10

// maxOther is how many bytes of a confirmation of something else a report quotes.
const maxOther = 50

// Report says which works are missing whose objects are held, and how to have these evicted; empty when there are none.
func Report(f Facts, fates map[string]Fate) string {
	var works []Work
	var held []string
	for _, w := range f.Works {
		if fates[w.Name] == Held && w.Confirmed == "" {
			works, held = append(works, w), append(held, w.Name)
		}
	}
	if len(held) == 0 {
		return ""
	}
	slices.Sort(held)
	return fmt.Sprintf("the hub does not have %d of the %d works that this cluster applied, and the agent did not see "+
		"that they were deleted: %s. Their objects stay. If the hub was restored from a backup, create the works again; "+
		"they take their objects over. %s", len(held), f.Known, message.List(held, maxNamed, ", "), f.how(nameOf(works)))
}

// how says how to confirm the eviction of the works of a list.
func (f Facts) how(name string) string {
	if name == "" {
		return "How to have their objects deleted is said here when the agent has recorded each of them"
	}
	text := fmt.Sprintf("To have the objects of exactly these works deleted, set annotation %s=%s on the ManagedCluster",
		names.AnnotationConfirmEviction, name)
	if f.Confirmation != "" {
		text += fmt.Sprintf("; %q was for other works", message.Cut(f.Confirmation, maxOther))
	}
	return text
}
