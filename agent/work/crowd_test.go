package work

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestLargeWorksHaveTheirPassesOneAfterTheOther(t *testing.T) {
	sized := func(bytesOfEach ...int) *workv1.ManifestWork {
		w := &workv1.ManifestWork{}
		for _, n := range bytesOfEach {
			m := workv1.Manifest{}
			m.Raw = bytes.Repeat([]byte("x"), n)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m)
		}
		return w
	}
	var c crowd
	leave, ok := c.enter(sized(maxCrowd/4, maxCrowd/4))
	require.True(t, ok)
	_, ok = c.enter(sized(maxCrowd/2 + 1))
	assert.False(t, ok, "both together have more than there is room for")
	_, ok = c.enter(sized(smallWork))
	assert.True(t, ok, "a small work never waits")
	_, ok = c.enter(nil)
	assert.True(t, ok, "and what is not a work has no bytes")
	other, ok := c.enter(sized(maxCrowd / 2))
	require.True(t, ok, "there is room for as much again")
	_, ok = c.enter(sized(smallWork + 1))
	assert.False(t, ok, "now there is none")
	leave()
	other()
	leave, ok = c.enter(sized(2 * maxCrowd))
	require.True(t, ok, "one that is larger than the room has it alone")
	_, ok = c.enter(sized(smallWork + 1))
	assert.False(t, ok, "until its pass ends")
	leave()
	assert.Zero(t, c.bytes)
}
