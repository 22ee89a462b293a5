package pause

import (
	"hash/fnv"
	"math"
	"time"
)

// Growing are pauses from First to Last. Where Last is shorter than First, all are Last.
type Growing struct {
	First, Last time.Duration
}

// Next returns the pause that follows one: twice as long. The first one follows none.
func (g Growing) Next(pause time.Duration) time.Duration {
	if pause > g.Last/2 { // Twice as long as a very long one would be negative.
		return g.Last
	}
	return min(max(2*pause, g.First), g.Last)
}

// After returns the pause after a number of failures in a row: First after one, and twice as long after each further
// one. After none it is zero.
func (g Growing) After(failures int) time.Duration {
	var pause time.Duration
	for range failures {
		if pause = g.Next(pause); pause == g.Last {
			break
		}
	}
	return pause
}

// Since returns the pause when something fails for a time: half of that time.
func (g Growing) Since(lasted time.Duration) time.Duration {
	return min(max(lasted/2, g.First), g.Last)
}

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
