package reconcile

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACountThatDoesNotFitIsTheLargestThatDoes(t *testing.T) {
	for n, want := range map[int]int32{
		0: 0, 1: 1, 5000: 5000, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: math.MaxInt32,
		math.MaxInt: math.MaxInt32, -1: 0,
	} {
		assert.Equal(t, want, Int32(n), "%d", n)
	}
}
