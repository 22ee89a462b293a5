package pause

import (
	"hash/fnv"
	"math"
	"time"
)

// Fraction maps the parts to a number in [0,1) that is always the same for the same parts and evenly spread over
// different ones.
func Fraction(parts ...string) float64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	// FNV leaves the high bits of short inputs close together; one round of mixing spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / math.Exp2(53)
}

// Spread returns base lengthened by a share of up to factor that depends only on the parts.
func Spread(base time.Duration, factor float64, parts ...string) time.Duration {
	return base + time.Duration(float64(base)*factor*Fraction(parts...))
}
