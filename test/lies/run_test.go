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
