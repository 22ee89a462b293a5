package missing

import (
	"slices"
	"time"
)

// Policy is what happens to the objects of works that are missing.
type Policy string

const (
	// Grace deletes them after the grace period, as OCM does.
	Grace Policy = "grace"
	// Hold keeps them where many works are missing at once, until a person confirms their eviction.
	Hold Policy = "hold"
)

const (
	// Window is what "at once" means: how far apart the first looks at two missing works are at most.
	Window = 15 * time.Minute
	// Settle is the shortest grace period with Hold: so long it takes to see how many works are missing.
	Settle = 5 * time.Second
	// maxCount and maxPart are how many works may be missing at once, as a number and as a part of all, of which the
	// objects are not held.
	maxCount, maxPart = 3, 10
)

// Fate is what happens to the objects of a work that is missing.
type Fate int

const (
	// Waits means that they go when the grace period is over.
	Waits Fate = iota
	// Held means that they stay until the work is back or a person confirms their eviction.
	Held
	// Confirmed means that they go now.
	Confirmed
)

// Work is a work that is missing.
type Work struct {
	Name string
	// Since is when the agent first found it missing.
	Since time.Time
	// Held reports that its objects were held before. They stay so when some of the others are back.
	Held bool
}

// Facts are what the decision depends on.
type Facts struct {
	Now time.Time
	// Known is how many works this agent applied that are not being deleted, the missing ones among them.
	Known int
	// Works are those that are missing.
	Works []Work
	// Older are works that went back to an earlier generation and lack objects that were applied, since the agent saw it.
	// No other explanation than a restored hub exists, so that these objects are held however few the works are.
	Older []Work
	// Leaving reports that the cluster is being detached from the hub, which explains everything.
	Leaving bool
	// Confirmed is the instant up to which a person confirmed what is missing; zero for none. Wrong is what the person
	// wrote where that is not an instant.
	Confirmed time.Time
	Wrong     string
}

// Confirm sets what a person confirmed, as it is written in the annotation.
func (f *Facts) Confirm(text string) {
	var err error
	if f.Confirmed, err = time.Parse(time.RFC3339, text); err != nil {
		f.Wrong = text
	}
}

// Confirms reports whether a person confirmed what is held since an instant.
func (f Facts) Confirms(since time.Time) bool {
	return !f.Confirmed.IsZero() && !since.After(f.Confirmed) && !f.Confirmed.After(f.Now)
}

// Decide returns the fate of each missing work, by its name.
func Decide(f Facts) map[string]Fate {
	fates := make(map[string]Fate, len(f.Works))
	works := slices.Clone(f.Works)
	slices.SortFunc(works, func(a, b Work) int { return a.Since.Compare(b.Since) })
	first, last := 0, 0 // of the works that went missing at once with the present one
	for i, w := range works {
		for w.Since.Sub(works[first].Since) > Window {
			first++
		}
		for last = max(last, i); last+1 < len(works) && works[last+1].Since.Sub(w.Since) <= Window; {
			last++
		}
		fates[w.Name] = f.fate(w, last-first+1)
	}
	return fates
}

// fate decides about one work, when so many went missing at once with it, itself among them.
func (f Facts) fate(w Work, atOnce int) Fate {
	many := atOnce > 1 && (atOnce > maxCount || atOnce*maxPart > f.Known)
	switch {
	case f.Leaving, !many && !w.Held:
		return Waits
	case f.Confirms(w.Since):
		return Confirmed
	}
	return Held
}
