package missing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// lost are works that went missing so many minutes after noon.
func lost(minutes ...int) []Work {
	works := make([]Work, len(minutes))
	for i, m := range minutes {
		works[i] = Work{Name: fmt.Sprint("w", i), Since: noon.Add(time.Duration(m) * time.Minute)}
	}
	return works
}

// held are lost works of which that is recorded.
func held(minutes ...int) []Work {
	works := lost(minutes...)
	for i, w := range works {
		works[i].UID, works[i].Held = types.UID("uid-"+w.Name), w.Since.Format(time.RFC3339)
	}
	return works
}

// recorded are works of which some have a confirmation recorded.
func recorded(works []Work, list string, some ...int) []Work {
	works = slices.Clone(works)
	for _, i := range some {
		works[i].Confirmed = list
	}
	return works
}

// Shows: work/missing-decided
func TestTheFateOfMissingWorks(t *testing.T) {
	for sentence, test := range map[string]struct {
		facts Facts
		want  []Fate
	}{
		"a single work goes as with OCM, also if it is the only one": {
			Facts{Known: 1, Works: lost(0)}, []Fate{Waits},
		},
		"two of twenty are not more than a tenth": {
			Facts{Known: 20, Works: lost(0, 0)}, []Fate{Waits, Waits},
		},
		"two of nineteen are": {
			Facts{Known: 19, Works: lost(0, 0)}, []Fate{Held, Held},
		},
		"three of a hundred may go": {
			Facts{Known: 100, Works: lost(0, 0, 0)}, []Fate{Waits, Waits, Waits},
		},
		"four may not": {
			Facts{Known: 100, Works: lost(0, 0, 0, 0)}, []Fate{Held, Held, Held, Held},
		},
		"what goes over hours does not go at once": {
			Facts{Known: 100, Works: lost(0, 16, 32, 48)}, []Fate{Waits, Waits, Waits, Waits},
		},
		"the window is fifteen minutes to either side": {
			Facts{Known: 100, Works: lost(0, 15, 10, 30)}, []Fate{Waits, Held, Waits, Waits},
		},
		"what was held stays held when the others are back": {Facts{Known: 100, Works: held(0)}, []Fate{Held}},
		"a cluster that leaves keeps nothing": {
			Facts{Known: 4, Works: lost(0, 0, 0, 0), Leaving: true}, []Fate{Waits, Waits, Waits, Waits},
		},
		"a confirmation does not shorten the grace of a single work": {
			Facts{Known: 9, Works: lost(0), Confirmation: nameOf(held(0))}, []Fate{Waits},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			fates := Decide(test.facts)
			got := make([]Fate, len(test.facts.Works))
			for i, w := range test.facts.Works {
				got[i] = fates[w.Name]
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Shows: work/missing-confirmed
func TestAPersonConfirmsTheWorksOfOneList(t *testing.T) {
	four := nameOf(held(0, 0, 0, 0))
	again, remade := held(0, 0, 0, 0), held(0, 0, 0, 0)
	again[3].Held, remade[3].UID = noon.Add(time.Hour).Format(time.RFC3339), "another"
	unrecorded := held(0, 0, 0, 0)
	unrecorded[3].Held = ""
	for sentence, test := range map[string]struct {
		confirmation string
		works        []Work
		want         []Fate
	}{
		"exactly this list":          {four, held(0, 0, 0, 0), []Fate{Confirmed, Confirmed, Confirmed, Confirmed}},
		"nothing":                    {"", held(0, 0, 0, 0), []Fate{Held, Held, Held, Held}},
		"an instant":                 {"2026-01-02T12:00:00Z", held(0, 0, 0, 0), []Fate{Held, Held, Held, Held}},
		"a list that grew":           {four, held(0, 0, 0, 0, 0), []Fate{Held, Held, Held, Held, Held}},
		"a list that shrank":         {four, held(0, 0, 0), []Fate{Held, Held, Held}},
		"a work that is lost again":  {four, again, []Fate{Held, Held, Held, Held}},
		"a work that was made again": {four, remade, []Fate{Held, Held, Held, Held}},
		"one that is not yet held":   {four, unrecorded, []Fate{Held, Held, Held, Held}},
		"nothing, which is no list":  {nameOf(unrecorded), unrecorded, []Fate{Held, Held, Held, Held}},
		"none goes before all can": {
			four, recorded(held(0, 0, 0, 0), four, 0, 2), []Fate{Held, Confirmed, Held, Confirmed},
		},
		"then all go": {
			four, recorded(held(0, 0, 0, 0), four, 0, 1, 2, 3), []Fate{Evicted, Evicted, Evicted, Evicted},
		},
		"the rest go, too":            {four, recorded(held(0, 0), four, 0, 1), []Fate{Evicted, Evicted}},
		"also without the annotation": {"", recorded(held(0, 0), four, 0, 1), []Fate{Evicted, Evicted}},
		"what joins them stays": {
			four, recorded(held(0, 0, 0, 0, 0), four, 0, 1, 2, 3), []Fate{Evicted, Evicted, Evicted, Evicted, Held},
		},
		"its own list is confirmed beside them": {
			nameOf(held(0, 0)), recorded(held(0, 0, 0, 0), "former", 2, 3), []Fate{Confirmed, Confirmed, Held, Held},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			fates := Decide(Facts{Known: 50, Works: test.works, Confirmation: test.confirmation})
			got := make([]Fate, len(test.works))
			for i, w := range test.works {
				got[i] = fates[w.Name]
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// TestEachMissingWorkIsComparedWithAllOthers counts, for random works, those that went missing at once with each.
func TestEachMissingWorkIsComparedWithAllOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		minutes := make([]int, random.IntN(12))
		for i := range minutes {
			minutes[i] = random.IntN(60)
		}
		f := Facts{Known: len(minutes) + random.IntN(40), Works: lost(minutes...)}
		fates := Decide(f)
		assert.Len(t, fates, len(minutes))
		for _, w := range f.Works {
			near := 0
			for _, other := range f.Works {
				if w.Since.Sub(other.Since).Abs() <= Window {
					near++
				}
			}
			assert.Equal(t, f.holds(w, near), fates[w.Name] == Held, "%v of %d", minutes, f.Known)
		}
	}
}

// Shows: work/missing-decided
func TestAReportNamesTheWorksAndHowToConfirm(t *testing.T) {
	f := Facts{Known: 20, Works: lost(0, 1, 2, 3, 4)}
	text := Report(f, Decide(f))
	assert.Contains(t, text, "does not have 5 of the 20 works")
	assert.Contains(t, text, "w0, w1, w2, w3, w4. Their objects stay.")
	assert.NotContains(t, text, "set annotation", "nothing can be confirmed that may have another name in a moment")
	f.Works = held(0, 1, 2, 3, 4)
	assert.Contains(t, Report(f, Decide(f)), "To have exactly these objects deleted, "+
		"set annotation work.spokelet.io/confirm-eviction="+nameOf(f.Works)+" on the ManagedCluster")
	f.Confirmation = "2026-01-02T12:00:00Z"
	assert.Contains(t, Report(f, Decide(f)), `on the ManagedCluster; "2026-01-02T12:00:00Z" was for other works`)
	f.Confirmation = nameOf(f.Works)
	assert.Empty(t, Report(f, Decide(f)), "the name that the report has confirms all works that it names")
	f.Works = recorded(f.Works, f.Confirmation, 0, 1)
	assert.Empty(t, Report(f, Decide(f)))
	f.Works = append(f.Works[:2], held(0, 1, 2, 3, 4, 5)[5])
	assert.Contains(t, Report(f, Decide(f)), "1 of the 20 works that this cluster applied, and the agent did not see "+
		"that they were deleted: w5.")
}

// Shows: work/older-held
func TestAReportNamesTheWorksThatAreOlder(t *testing.T) {
	older := Work{Name: "old", UID: "u", Older: true, Held: "2026-01-02T12:02:00Z"}
	f := Facts{Known: 20, Older: []Work{older}}
	text := Report(f, Decide(f))
	assert.Contains(t, text, "the hub has an older content of 1 works than this cluster applied: old.")
	assert.Contains(t, text, "set annotation work.spokelet.io/confirm-eviction="+nameOf(f.Older)+" on the ManagedCluster")
	assert.NotContains(t, text, "does not have", "a single one is held, and none is missing")
	f.Works = held(0, 1, 3, 3, 3)
	text = Report(f, Decide(f))
	assert.Contains(t, text, "does not have 5 of the 20 works")
	assert.Contains(t, text, "older content of 1 works")
	f.Confirmation = nameOf(f.Older)
	assert.Contains(t, Report(f, Decide(f)), "was for other works", "one value is for all that the report names")
	f.Confirmation = nameOf(append(f.Works, f.Older...))
	assert.Contains(t, text, "confirm-eviction="+f.Confirmation+" on")
	assert.Equal(t, Confirmed, Decide(f)["old"])
	assert.Equal(t, Confirmed, Decide(f)["w0"])
	f.Works, f.Older = recorded(f.Works, f.Confirmation, 0, 1, 2, 3, 4), recorded(f.Older, f.Confirmation, 0)
	assert.Equal(t, Evicted, Decide(f)["old"])
	assert.Equal(t, Evicted, Decide(f)["w0"])
	missing := older
	missing.Older = false
	assert.NotEqual(t, nameOf([]Work{older}), nameOf([]Work{missing}), "the loss of the rest is another one")
	f = Facts{Known: 20, Works: []Work{{Name: "w", Confirmed: "former", Since: noon}, {Name: "v", Since: noon}}}
	f.Known = 2
	assert.Equal(t, Held, Decide(f)["w"], "what was confirmed of an older work is not the loss of all of it")
}
