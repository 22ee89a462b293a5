package watch

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spokelet/spokelet/internal/pause"
)

const (
	// stuckAfter is how often a watch of events may end without getting on before it begins again.
	stuckAfter = 3
	// mostBeginnings is how often a watch begins again within leastBetween. A caller that has to read all objects each
	// time is told to poll then.
	mostBeginnings = 3
	leastBetween   = 5 * time.Minute
)

// errCutOff is the end of a watch of events that the API server accepted and that showed nothing.
var errCutOff = errors.New("the watch is cut off before it shows anything")

// course follows a watch of events, which goes on where it was when it is cut off.
type course struct {
	// began is when it last began without a version, and begun are its beginnings of the last leastBetween.
	began time.Time
	begun []time.Time
	// expired is set when the API server said that it does not have the version any more, and lost when the watch cannot
	// get on and has begun too often already.
	expired, lost bool
	// accepted is set when the API server accepted the present watch, at that instant and version.
	accepted bool
	at       time.Time
	version  string
	// stuck counts the ends since it last got on.
	stuck int
	// works is set when the last watch showed something or lasted, shut when it was accepted and did not.
	works, shut bool
}

// gotOn reports whether a watch that is at a version now showed something, or lasted, since it was accepted.
func (c *course) gotOn(version string, now time.Time) bool {
	return c.accepted && (version != c.version || now.Sub(c.at) >= steady)
}

// throttled takes up that an overloaded API server refuses the watch, and reports whether it worked before.
func (c *course) throttled(version string, now time.Time) (worked bool) {
	worked = c.gotOn(version, now)
	c.accepted = false
	if worked {
		c.stuck = 0
	}
	return worked
}

// ended takes the end of a watch that is at a version now, and reports whether it is to begin again. A watch that does
// not get on counts as refused, so that its pauses grow as long.
func (c *course) ended(end *ending, relist bool, version string, now time.Time) (again bool) {
	c.works = c.gotOn(version, now)
	blind := !c.works && !relist && !unreached(end.err)
	// An API server that is away, or out of order, comes back; what it accepts, or has forgotten, ends so again.
	expired := c.expired || apierrors.IsResourceExpired(end.err) || apierrors.IsGone(end.err)
	stays := c.accepted || expired
	c.shut = blind && c.accepted
	c.accepted, c.expired = false, false
	if c.works || relist {
		c.stuck = 0
	}
	if blind {
		if stays {
			c.stuck++
			end.refused = true
		}
		if expired {
			c.stuck = stuckAfter // each version from here on is as old
		}
		if end.err == nil {
			end.err = errCutOff
		}
	}
	again, c.lost = relist, false
	if !relist && c.stuck >= stuckAfter {
		again = c.mayBegin(now)
		c.lost = !again
	}
	if again {
		c.began, c.stuck = now, 0
		end.refused = false
	}
	return again
}

// mayBegin reports whether a watch that does not get on may begin again now, which counts.
func (c *course) mayBegin(now time.Time) bool {
	c.begun = slices.DeleteFunc(c.begun, func(at time.Time) bool { return now.Sub(at) >= leastBetween })
	if len(c.begun) >= mostBeginnings {
		return false
	}
	c.begun = append(c.begun, now)
	return true
}

const (
	// firstPause and lastPause bound the pause after a failure.
	firstPause, lastPause = time.Second, 30 * time.Second
	// refusedPause is the longest pause while the API server refuses the watch.
	refusedPause = 5 * time.Minute
	// endedPause is the pause after a watch that ended normally.
	endedPause = 100 * time.Millisecond
	// steady is how long a watch lasts at least that is taken to work.
	steady = 10 * time.Second
)

// ending is how a watch ended.
type ending struct {
	// err is nil when the watch ended normally.
	err error
	// refused is set when err does not go away by itself.
	refused bool
	// lasted is the time since the watch began.
	lasted time.Duration
	// progressed is set when the watch delivered a list or an event.
	progressed bool
}

// backoff is the sequence of pauses of one watch.
type backoff struct {
	pause  time.Duration
	failed bool
}

// next returns the pause after a watch ended. It doubles as long as watches end in the same way without having worked.
func (b *backoff) next(end ending) time.Duration {
	first, longest, worked := endedPause, lastPause, end.lasted >= steady
	if end.err != nil {
		first, worked = firstPause, worked && end.progressed
	}
	if end.refused {
		longest = refusedPause
	}
	failed := end.err != nil
	if worked || failed != b.failed || b.pause == 0 {
		b.pause, b.failed = first, failed
	} else {
		b.pause = pause.Growing{First: first, Last: longest}.Next(b.pause)
	}
	return b.pause
}
