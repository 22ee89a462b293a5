package lies

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSeedsGoOnAsLongAsThereIsTime(t *testing.T) {
	assert.Equal(t, []uint64{7, 3}, slices.Collect(Options{Seeds: []uint64{7, 3}}.seeds(time.Now())))
	synctest.Test(t, func(t *testing.T) {
		var played []uint64
		for seed := range (Options{Seeds: []uint64{7, 3}, Lasts: 50 * time.Second}).seeds(time.Now()) {
			played = append(played, seed)
			time.Sleep(15 * time.Second)
		}
		assert.Equal(t, []uint64{7, 3, 4, 5}, played, "the last one begins in time and ends later")
	})
}

func TestAProgramMayEndBecauseOfLies(t *testing.T) {
	honest := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return honest.Add(time.Duration(seconds) * time.Second) }
	assert.True(t, (&keeper{}).mayEnd(time.Time{}, at(0)), "they lie")
	k := &keeper{honest: honest}
	assert.True(t, k.mayEnd(time.Time{}, at(15)))
	assert.False(t, k.mayEnd(time.Time{}, at(16)))
	assert.True(t, k.mayEnd(at(-20), at(40)), "it began among lies, and starts slowly")
	assert.False(t, k.mayEnd(at(-20), at(41)))
	assert.False(t, k.mayEnd(at(1), at(30)), "it began when all said the truth")
}
