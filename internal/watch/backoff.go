package watch

import (
	"time"

	"github.com/spokelet/spokelet/internal/pause"
)

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
