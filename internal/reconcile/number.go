package reconcile

import "math"

// Int32 is a count or an index as the API has it. One that does not fit, which nothing in a cluster reaches, becomes the
// largest that does.
func Int32(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }
