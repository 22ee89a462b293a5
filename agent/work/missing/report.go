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

// Report says which works are missing whose objects are held, which are older than what was applied, and how to have
// the objects deleted; empty when there are none.
func Report(f Facts, fates map[string]Fate) string {
	open := func(works []Work) (left []Work) {
		for _, w := range works {
			if fates[w.Name] == Held && w.Confirmed == "" {
				left = append(left, w)
			}
		}
		return left
	}
	lost, older := open(f.Works), open(f.Older)
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
	return text + f.how(nameOf(slices.Concat(lost, older)))
}

// how says how to confirm that the objects of the works of a list go.
func (f Facts) how(name string) string {
	if name == "" {
		return "How to have these objects deleted is said here when the agent has recorded each of them"
	}
	text := fmt.Sprintf("To have exactly these objects deleted, set annotation %s=%s on the ManagedCluster",
		names.AnnotationConfirmEviction, name)
	if f.Confirmation != "" {
		text += fmt.Sprintf("; %q was for other works", message.Cut(f.Confirmation, maxOther))
	}
	return text
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
