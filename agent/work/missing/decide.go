package missing

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/confirmation"
)

// Policy says what happens to the objects of works that are missing.
type Policy string

const (
	// Grace deletes them after the grace period, as OCM does.
	Grace Policy = "grace"
	// Hold keeps them where many works are missing at once, until a person confirms their eviction.
	Hold Policy = "hold"
)

const (
	// Window says what "at once" means: how far apart the first looks at two missing works are at most.
	Window = 15 * time.Minute
	// Settle is the shortest grace period with Hold: so long it takes to see how many works are missing.
	Settle = 5 * time.Second
	// maxCount and maxPart are how many works may be missing at once, as a number and as a part of all, of which the
	// objects are not held.
	maxCount, maxPart = 3, 10
)

// Fate says what happens to the objects of a work that is missing.
type Fate int

const (
	// Waits means that they go when the grace period is over.
	Waits Fate = iota
	// Held means that they stay until the work is back or a person confirms their eviction.
	Held
	// Confirmed means that a person confirmed that they go, which is to be recorded before any of them does.
	Confirmed
	// Evicted means that they go now.
	Evicted
)

// Work is a work that is missing, or older than what was applied.
type Work struct {
	Name string
	// UID is that of its AppliedManifestWork.
	UID types.UID
	// Older reports that the work is there, in an older content.
	Older bool
	// Since is when the agent first found it missing.
	Since time.Time
	// Held is what was recorded when its objects were held; empty when they are not. They stay so when some of the others
	// are back.
	Held string
	// Confirmed is the recorded name of the list with which a person confirmed the eviction; empty for none.
	Confirmed string
}

// Facts are what the decision depends on.
type Facts struct {
	// Known is how many works this agent applied that are not being deleted, the missing ones among them.
	Known int
	// Works are those that are missing.
	Works []Work
	// Older are works that went back to an earlier generation and lack objects that were applied. No other explanation
	// than a restored hub exists, so that these objects are held however few the works are.
	Older []Work
	// Leaving reports that the cluster is being detached from the hub, which explains everything.
	Leaving bool
	// Confirmation is the name of the list that a person confirmed, as it is written in the annotation.
	Confirmation string
}

// Decide returns the fate of each missing or older work, by its name: that of all its objects, or of those that the
// older content does not have.
func Decide(f Facts) map[string]Fate {
	fates := make(map[string]Fate, len(f.Works))
	works := slices.Clone(f.Works)
	slices.SortFunc(works, func(a, b Work) int { return a.Since.Compare(b.Since) })
	first, last := 0, 0 // of the works that went missing at once with the present one
	var held []Work
	for i, w := range works {
		for w.Since.Sub(works[first].Since) > Window {
			first++
		}
		for last = max(last, i); last+1 < len(works) && works[last+1].Since.Sub(w.Since) <= Window; {
			last++
		}
		if fates[w.Name] = Waits; f.holds(w, last-first+1) {
			held = append(held, w)
		}
	}
	held = append(held, f.Older...)
	confirms := f.confirms(held)
	for _, w := range held {
		switch {
		case confirms && w.Confirmed == "":
			fates[w.Name] = Confirmed
		case !confirms && w.Confirmed != "" && w.Held != "":
			fates[w.Name] = Evicted
		default:
			fates[w.Name] = Held
		}
	}
	return fates
}

// holds reports whether a work is held, when so many went missing at once with it, itself among them.
func (f Facts) holds(w Work, atOnce int) bool {
	many := atOnce > 1 && (atOnce > maxCount || atOnce*maxPart > f.Known)
	return !f.Leaving && (many || w.Held != "")
}

// confirms reports whether a person confirmed exactly the works that are held, and some do not have it recorded. While
// that is so, none of them goes: the list would be another one, and the rest would not be confirmed any more.
func (f Facts) confirms(held []Work) bool {
	var list []Work
	open := false
	for _, w := range held {
		if w.Confirmed == "" || w.Confirmed == f.Confirmation {
			list = append(list, w)
		}
		open = open || w.Confirmed == ""
	}
	return open && f.Confirmation != "" && nameOf(list) == f.Confirmation
}

// nameOf returns the name by which a person confirms a list of works that are held; empty while that is not recorded of
// each. The name is of this very loss: works that are made again, or go missing once more, have another one.
func nameOf(works []Work) string {
	items := make([]string, 0, len(works))
	for _, w := range works {
		if w.Held == "" {
			return ""
		}
		item := []string{w.Name, string(w.UID), w.Held}
		if w.Older {
			item = append(item, "older")
		}
		items = append(items, strings.Join(item, "/"))
	}
	slices.Sort(items)
	return confirmation.Name("works", items)
}
