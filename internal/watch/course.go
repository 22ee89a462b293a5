package watch

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// stuckAfter is how often a watch of events may end without getting on before it begins again.
	stuckAfter = 3
	// leastBetween is the least time between two beginnings for that reason. A caller that has to read all objects at each
	// of them is told to poll in between.
	leastBetween = 5 * time.Minute
)

// errCutOff is the end of a watch of events that the API server accepted and that showed nothing.
var errCutOff = errors.New("the watch is cut off before it shows anything")

// course follows a watch of events, which goes on where it was when it is cut off.
type course struct {
	// began is when it last began without a version.
	began time.Time
	// accepted is set when the API server accepted the present watch, at that instant and version.
	accepted bool
	at       time.Time
	version  string
	// stuck counts the ends since it last got on.
	stuck int
	// works is set when the last watch showed something or lasted, blind when it did not.
	works, blind bool
	// shut is set when the last watch was accepted and showed nothing.
	shut bool
}

// throttled takes up that an overloaded API server refuses the watch, and reports whether it worked before.
func (c *course) throttled(version string, now time.Time) (worked bool) {
	worked = c.accepted && (version != c.version || now.Sub(c.at) >= steady)
	c.accepted = false
	if worked {
		c.stuck = 0
	}
	return worked
}

// ended takes the end of a watch that is at a version now, and reports whether it is to begin again. A watch that does
// not get on counts as refused, so that its pauses grow as long.
func (c *course) ended(end *ending, relist bool, version string, now time.Time) (again bool) {
	c.works = c.accepted && (version != c.version || now.Sub(c.at) >= steady)
	c.blind = !c.works && !relist && !unreached(end.err)
	// An API server that is away, or out of order, comes back; what it accepts, or has forgotten, ends so again.
	stays := c.accepted || apierrors.IsResourceExpired(end.err) || apierrors.IsGone(end.err)
	c.shut = c.blind && c.accepted
	c.accepted = false
	if c.works || relist {
		c.stuck = 0
	}
	if c.blind {
		if stays {
			c.stuck++
			end.refused = true
		}
		if end.err == nil {
			end.err = errCutOff
		}
	}
	if relist || c.stuck >= stuckAfter && now.Sub(c.began) >= leastBetween {
		c.began, c.stuck = now, 0
		return true
	}
	return false
}
