package pause

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPauseDoublesUpToTheLast(t *testing.T) {
	g := Growing{First: time.Second, Last: 5 * time.Second}
	for failures, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second} {
		assert.Equal(t, want, g.After(failures), failures)
	}
	assert.Equal(t, 5*time.Second, g.After(math.MaxInt))
	assert.Equal(t, time.Second, g.Next(0))
	assert.Equal(t, time.Second, g.Next(100*time.Millisecond), "one that is shorter than the first")
	assert.Equal(t, 5*time.Second, g.Next(math.MaxInt64), "no pause is negative")
	assert.Equal(t, time.Millisecond, Growing{First: time.Second, Last: time.Millisecond}.After(1))
}

func TestAPauseIsHalfOfWhatAFailureLasts(t *testing.T) {
	g := Growing{First: time.Second, Last: time.Minute}
	assert.Equal(t, time.Second, g.Since(-time.Hour), "a clock was turned back")
	assert.Equal(t, time.Second, g.Since(time.Second))
	assert.Equal(t, 10*time.Second, g.Since(20*time.Second))
	assert.Equal(t, time.Minute, g.Since(time.Hour))
}
