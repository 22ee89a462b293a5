package missing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// Shows: work/missing-decided
func TestTheFateOfMissingWorks(t *testing.T) {
	held := lost(0)
	held[0].Held = true
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
		"what was held stays held when the others are back": {Facts{Known: 100, Works: held}, []Fate{Held}},
		"a cluster that leaves keeps nothing": {
			Facts{Known: 4, Works: lost(0, 0, 0, 0), Leaving: true}, []Fate{Waits, Waits, Waits, Waits},
		},
		"a person confirms what is missing up to an instant": {
			Facts{Known: 3, Works: lost(0, 1, 2), Confirmed: noon.Add(time.Minute), Now: noon.Add(time.Hour)},
			[]Fate{Confirmed, Confirmed, Held},
		},
		"an instant that is still to come confirms nothing": {
			Facts{Known: 2, Works: lost(0, 1), Confirmed: noon.Add(time.Hour), Now: noon.Add(time.Minute)}, []Fate{Held, Held},
		},
		"a confirmation does not shorten the grace of a single work": {
			Facts{Known: 9, Works: lost(0), Confirmed: noon.Add(time.Minute), Now: noon.Add(time.Hour)}, []Fate{Waits},
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

// TestEachMissingWorkIsComparedWithAllOthers counts, for random works, those that went missing at once with each.
func TestEachMissingWorkIsComparedWithAllOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		minutes := make([]int, random.IntN(12))
		for i := range minutes {
			minutes[i] = random.IntN(60)
		}
		f := Facts{Known: len(minutes) + random.IntN(40), Works: lost(minutes...), Now: noon}
		fates := Decide(f)
		assert.Len(t, fates, len(minutes))
		for _, w := range f.Works {
			near := 0
			for _, other := range f.Works {
				if w.Since.Sub(other.Since).Abs() <= Window {
					near++
				}
			}
			assert.Equal(t, f.fate(w, near), fates[w.Name], "%v of %d", minutes, f.Known)
		}
	}
}

// Shows: work/missing-decided
func TestAReportNamesTheWorksAndHowToConfirm(t *testing.T) {
	f := Facts{Known: 20, Works: lost(0, 1, 2, 3, 4), Now: noon}
	text := Report(f, Decide(f))
	assert.Contains(t, text, "does not have 5 of the 20 works")
	assert.Contains(t, text, "w0, w1, w2, w3, w4. Their objects stay.")
	assert.Contains(t, text, "set annotation work.spokelet.io/confirm-eviction=2026-01-02T12:04:00Z on the ManagedCluster")
	f.Confirmed, f.Now = noon.Add(3*time.Minute), noon.Add(time.Hour)
	assert.Contains(t, Report(f, Decide(f)), "1 of the 20 works")
	f.Confirmed = noon.Add(4 * time.Minute)
	assert.Empty(t, Report(f, Decide(f)), "the instant that the report names confirms all that it names")
	f.Confirm("yes")
	assert.Contains(t, Report(f, Decide(f)), `; "yes" is not an instant`)
	f.Confirm(Instant(noon.Add(4 * time.Minute)))
	assert.Equal(t, noon.Add(4*time.Minute), f.Confirmed)
}

// Shows: work/older-held
func TestAReportNamesTheWorksThatAreOlder(t *testing.T) {
	f := Facts{Known: 20, Older: lost(2), Now: noon.Add(time.Hour)}
	text := Report(f, Decide(f))
	assert.Contains(t, text, "the hub has an older content of 1 works than this cluster applied: w0.")
	assert.Contains(t, text, "set annotation work.spokelet.io/confirm-eviction=2026-01-02T12:02:00Z on the ManagedCluster")
	assert.NotContains(t, text, "does not have", "a single one is held, and none is missing")
	f.Works = lost(0, 1, 3, 3, 3)
	text = Report(f, Decide(f))
	assert.Contains(t, text, "does not have 5 of the 20 works")
	assert.Contains(t, text, "older content of 1 works")
	assert.Contains(t, text, "=2026-01-02T12:03:00Z on", "one instant confirms all that the report names")
	f.Confirmed = noon.Add(2 * time.Minute)
	assert.NotContains(t, Report(f, Decide(f)), "older")
	f.Confirmed = noon.Add(3 * time.Minute)
	assert.Empty(t, Report(f, Decide(f)))
	f.Now = noon
	assert.Contains(t, Report(f, Decide(f)), "older", "an instant that is still to come confirms nothing")
	f.Older[0].Since = time.Time{}
	f.Confirmed = time.Time{}
	assert.Contains(t, Report(f, Decide(f)), "older", "a mark that cannot be read is not confirmed by nothing")
}
