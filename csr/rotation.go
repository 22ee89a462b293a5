package csr

import (
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
)

// ConditionRotated is the condition of a ManagedCluster or ManagedClusterAddOn about its certificate.
const ConditionRotated = names.ConditionCertificateRotated

const (
	// earliestRotation is the share of its lifetime after which the first certificates of a fleet are replaced.
	earliestRotation = 0.75
	// rotationBand is the share of the lifetime over which a fleet spreads its rotations.
	rotationBand = 0.05
)

// RotateAt returns the instant between 75 and 80 percent of a lifetime at which a credential is to be replaced. The
// place in that band depends on the seed alone, which names the credential and its owner: so it is the same at every
// look, and a fleet whose credentials were issued together does not come back together.
func RotateAt(from, to time.Time, seed ...string) time.Time {
	lifetime := to.Sub(from)
	if lifetime <= 0 {
		return from
	}
	return from.Add(time.Duration(float64(lifetime) * (earliestRotation + rotationBand*pause.Fraction(seed...))))
}
