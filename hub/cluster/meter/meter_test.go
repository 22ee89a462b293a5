package meter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// hand is a meter whose clock the test moves.
type hand struct {
	*Meter
	clock *clocktesting.FakePassiveClock
}

func newHand() hand {
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return hand{New(c), c}
}

func (h hand) pass(d time.Duration) { h.clock.SetTime(h.clock.Now().Add(d)) }

// every notes something at regular intervals for a time.
func (h hand) every(interval, lasting time.Duration, note func()) {
	for range lasting / interval {
		note()
		h.pass(interval)
	}
}

func (h hand) one(rule Rule, name string) func() { return func() { h.Note("c1", rule, thing(name)) } }

func thing(name string) Thing { return Thing{Kind: "ManifestWork", Name: name} }

// Shows: hub/one-bad-cluster-told
func TestWhatIsFound(t *testing.T) {
	found := func(rule Rule, name string) []Finding { return []Finding{{rule, thing(name)}} }
	tests := map[string]struct {
		given func(h hand)
		want  []Finding
	}{
		"nothing, where nothing happened": {given: func(hand) {}},
		"a work that is written ten times a second": {
			given: func(h hand) { h.every(100*time.Millisecond, 15*time.Second, h.one(Writes, "w")) },
			want:  found(Writes, "w"),
		},
		"not a work that is written as fast as our agent does": {given: func(h hand) {
			h.every(time.Millisecond, 5*time.Millisecond, h.one(Writes, "w"))
			h.every(5*time.Second, time.Hour, h.one(Writes, "w"))
		}},
		"not a rollout that our agent reports about five hundred works as fast as it does": {given: func(h hand) {
			h.every(5*time.Second, 10*time.Minute, func() {
				for i := range 500 {
					h.one(Writes, fmt.Sprint("w", i))()
				}
			})
		}},
		"a work that is written all the time, among five hundred that are not": {
			given: func(h hand) {
				n := 0
				h.every(10*time.Millisecond, 10*time.Second, func() {
					h.one(Writes, "w")()
					h.one(Writes, fmt.Sprint("w", n%500))()
					n++
				})
			},
			want: found(Writes, "w"),
		},
		"very many works that are written by turns": {
			given: func(h hand) {
				n := 0
				h.every(2*time.Millisecond, 30*time.Second, func() { h.one(Writes, fmt.Sprint("w", n%500))(); n++ })
			},
			want: []Finding{{Writes, Thing{}}},
		},
		"conditions that change each second": {
			given: func(h hand) { h.every(time.Second, time.Minute, h.one(Flips, "w")) },
			want:  found(Flips, "w"),
		},
		"not a workload whose pods crash five times a minute": {given: func(h hand) {
			h.every(12*time.Second, time.Hour, h.one(Flips, "w"))
		}},
		"certificate requests in a loop": {
			given: func(h hand) { h.every(time.Second, 10*time.Second, h.one(Requests, "a")) },
			want:  found(Requests, "a"),
		},
		"a new certificate request after each crash, when the kubelet waits five minutes": {
			given: func(h hand) { h.every(5*time.Minute-time.Second, 3*time.Hour, h.one(Requests, "a")) },
			want:  found(Requests, "a"),
		},
		"not certificates of ten minutes": {given: func(h hand) {
			h.every(7*time.Minute, 3*time.Hour, h.one(Requests, "a"))
		}},
		"not twenty add-ons that are enabled at once": {given: func(h hand) {
			for i := range 20 {
				h.one(Requests, fmt.Sprint("a", i))()
			}
		}},
		"requests for ever another add-on": {
			given: func(h hand) {
				n := 0
				h.every(time.Second, 5*time.Minute, func() { h.one(Requests, fmt.Sprint("a", n))(); n++ })
			},
			want: []Finding{{Requests, Thing{}}},
		},
		"one finding of each rule": {
			given: func(h hand) {
				h.every(100*time.Millisecond, 30*time.Second, func() {
					h.one(Writes, "v")()
					h.one(Writes, "w")()
					h.one(Flips, "w")()
				})
			},
			want: []Finding{{Writes, thing("v")}, {Flips, thing("w")}},
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			h := newHand()
			tc.given(h)
			assert.Equal(t, tc.want, h.Read("c1").Findings)
			assert.Empty(t, h.Read("c2").Findings, "another cluster has nothing to do with it")
		})
	}
}

func TestAFindingEndsAfterAQuietWindow(t *testing.T) {
	h := newHand()
	h.every(time.Second/10, 12*time.Second, h.one(Writes, "w"))
	assert.Empty(t, h.Read("c1").Findings, "so much is still healthy")
	assert.True(t, h.Note("c1", Writes, thing("w")), "the one that is too many is told at once")
	assert.False(t, h.Note("c1", Writes, thing("w")), "and once")
	for range 2 {
		reading := h.Read("c1")
		require.Len(t, reading.Findings, 1)
		h.pass(reading.Next.Sub(h.clock.Now()) - time.Nanosecond)
		assert.Len(t, h.Read("c1").Findings, 1, "it stays until then")
		h.pass(time.Nanosecond)
	}
	reading := h.Read("c1")
	assert.Empty(t, reading.Findings)
	assert.Zero(t, reading.Next)
}

func TestAFindingThatBecomesHalfAsMuchStays(t *testing.T) {
	h := newHand()
	h.every(time.Second/10, time.Minute, h.one(Writes, "w"))
	h.every(time.Minute/61, 10*time.Minute, h.one(Writes, "w"))
	assert.Len(t, h.Read("c1").Findings, 1, "61 times a minute would be no finding, but is one that goes on")
	h.every(time.Minute/60, 10*time.Minute, h.one(Writes, "w"))
	assert.Empty(t, h.Read("c1").Findings)
}

// TestNoAgentMakesTheFindingsFlip draws what an agent does, and counts how often the findings of a rule change.
func TestNoAgentMakesTheFindingsFlip(t *testing.T) {
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 1))
		h := newHand()
		began := h.clock.Now()
		var before []Finding
		changes := 0
		const minutes = 60
		for h.clock.Now().Before(began.Add(minutes * time.Minute)) {
			name := fmt.Sprint("w", draw.IntN(3))
			for range draw.IntN(400) {
				h.one(Writes, name)()
			}
			h.pass(time.Duration(draw.Int64N(int64(90 * time.Second))))
			if now := h.Read("c1").Findings; !assert.ObjectsAreEqual(before, now) {
				before = now
				changes++
			}
		}
		assert.LessOrEqual(t, changes, 2*minutes, "seed %d", seed)
		assert.Positive(t, changes, "seed %d", seed)
	}
}

func TestAMeterTakesLittleMemory(t *testing.T) {
	h := newHand()
	for i := range 10_000 {
		for rule := range Rule(rules) {
			h.one(rule, fmt.Sprint("w", i))()
		}
	}
	for rule := range Rule(rules) {
		assert.Len(t, h.accounts["c1"].one[rule], things)
	}
	h.pass(2 * Requests.Limit().Window)
	h.Note("c2", Writes, thing("w"))
	assert.NotContains(t, h.accounts, "c1", "a cluster that is quiet is forgotten")
}

func BenchmarkNote(b *testing.B) {
	h := newHand()
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprint("w", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Note("c1", Writes, thing(names[i%len(names)]))
	}
}
