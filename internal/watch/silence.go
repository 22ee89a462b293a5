package watch

import (
	"errors"
	"net"
	"time"
)

// silentAfter is how long a watch may fail without a list before that is reported.
const silentAfter = 30 * time.Second

// silence follows whether a watch delivers lists.
type silence struct {
	// listed is set by each list, and for a watch without lists each time that it is accepted.
	listed bool
	// since is the first failure after the last list; zero when there was none.
	since time.Time
	// told is set when the silence was reported.
	told bool
}

// ended takes an end of the watch and reports whether the watch has been silent for so long now that this has to be
// reported.
func (s *silence) ended(err error, now time.Time) bool {
	if s.listed {
		*s = silence{}
	}
	if err == nil || unreached(err) {
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	if s.told || now.Sub(s.since) < silentAfter {
		return false
	}
	s.told = true
	return true
}

// unreached reports whether there was no connection to the API server. Other requests fail then, too.
func unreached(err error) bool {
	var connection *net.OpError
	return errors.As(err, &connection) && connection.Op == "dial"
}
