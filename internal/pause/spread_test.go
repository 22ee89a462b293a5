package pause

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFractionIsSpreadEvenly(t *testing.T) {
	const buckets, each = 20, 500
	for name, part := range map[string]func(i int) []string{
		"numbered names":      func(i int) []string { return []string{"cluster" + strconv.Itoa(i)} },
		"names in two parts":  func(i int) []string { return []string{strconv.Itoa(i % 97), strconv.Itoa(i)} },
		"a long common start": func(i int) []string { return []string{"system:open-cluster-management:", strconv.Itoa(i)} },
		"a long common end":   func(i int) []string { return []string{strconv.Itoa(i), "hello", "agent", "certificate"} },
	} {
		t.Run(name, func(t *testing.T) {
			var count [buckets]int
			for i := range buckets * each {
				f := Fraction(part(i)...)
				assert.GreaterOrEqual(t, f, 0.0)
				assert.Less(t, f, 1.0)
				count[int(f*buckets)]++
			}
			for bucket, n := range count {
				assert.InDelta(t, each, n, each/4, "bucket %d of %d", bucket, buckets)
			}
		})
	}
}

func TestFractionStaysTheSame(t *testing.T) {
	assert.NotEqual(t, Fraction("c1", "hello"), Fraction("c1h", "ello"), "the parts are kept apart")
	assert.NotEqual(t, Fraction("a", "b"), Fraction("b", "a"))
	// A fixed value: after an upgrade of the hub or the agent, a fleet must not be spread again.
	assert.InDelta(t, 0.9396153618761711, Fraction("cluster", "hello"), 1e-15)
}

func TestSpread(t *testing.T) {
	for i := range 200 {
		name := strconv.Itoa(i)
		got := Spread(time.Minute, 0.25, name)
		assert.GreaterOrEqual(t, got, time.Minute)
		assert.Less(t, got, 75*time.Second)
		assert.Equal(t, got, Spread(time.Minute, 0.25, name))
	}
	assert.Equal(t, time.Minute, Spread(time.Minute, 0, "x"))
}
