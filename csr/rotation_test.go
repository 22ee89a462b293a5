package csr

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/names"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Shows: registration/rotation-band
func TestRotationStaysInItsBand(t *testing.T) {
	lifetimes := []time.Duration{30 * time.Second, 10 * time.Minute, 24 * time.Hour, 365 * 24 * time.Hour, 87600 * time.Hour}
	var lowest, highest = 1.0, 0.0
	for serial := range int64(400) {
		for _, lifetime := range lifetimes {
			want := ForCluster(fmt.Sprintf("c%d", serial%7), "a1")
			to := noon.Add(lifetime)
			at := RotateAt(noon, to, big.NewInt(serial).String(), want.Labels[names.LabelClusterName])
			share := float64(at.Sub(noon)) / float64(lifetime)
			if share < 0.75 || share > 0.80 {
				t.Fatalf("serial %d, lifetime %s: rotates after %.3f of it", serial, lifetime, share)
			}
			again := RotateAt(noon, to, big.NewInt(serial).String(), want.Labels[names.LabelClusterName])
			assert.True(t, at.Equal(again), "the same at every look")
			lowest, highest = min(lowest, share), max(highest, share)
		}
	}
	assert.Less(t, lowest, 0.753, "the band is used from its start")
	assert.Greater(t, highest, 0.797, "the band is used to its end")
}

func TestACertificateWithoutALifetimeIsDue(t *testing.T) {
	assert.Equal(t, noon, RotateAt(noon, noon, "1"))
}
