package reconcile

import "math"

// Int32 is a count or an index as the API has it. One that does not fit, which nothing in a cluster reaches, becomes
// the largest that does.
func Int32(n int) int32 {
	if n < 0 {
		return 0
	}
	if n > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(n)
}
