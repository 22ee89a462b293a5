package pause

import "time"

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
