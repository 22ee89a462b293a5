package probe

import (
	"fmt"
	"net/http"
	"net/netip"
)

// withheld holds what a client elsewhere is told of a failed check.
const withheld = "failed: reason withheld"

// Line is one line of an answer.
type Line struct {
	// Name is the name of the check. A line without a name is for clients on the loopback address only.
	Name string
	// Text says what it found.
	Text string
	// State is how it ended.
	State State
}

// State is how a check ended.
type State int

const (
	// OK is a check that succeeded.
	OK State = iota
	// Failed is a check that failed.
	Failed
	// Note informs, and fails nothing. It is part of verbose answers.
	Note
)

// String returns the line as the API server of Kubernetes writes it.
func (l Line) String() string {
	switch {
	case l.Name == "":
		return l.Text
	case l.State == Failed:
		return "[-]" + l.Name + " " + l.Text
	case l.State == Note:
		return "[!]" + l.Name + " " + l.Text
	}
	return "[+]" + l.Name + " " + l.Text
}

// Verbose reports whether a client asks for all lines.
func Verbose(r *http.Request) bool { return r.URL.Query().Has("verbose") }

// Local reports whether a request comes from the loopback address.
func Local(r *http.Request) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && address.Addr().Unmap().IsLoopback()
}

// Respond answers a probe. Notes are left out unless the client asks for all lines.
func Respond(w http.ResponseWriter, r *http.Request, good bool, lines ...Line) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	local, verbose := Local(r), Verbose(r)
	told := 0
	for _, line := range lines {
		switch {
		case line.State == Note && (!verbose || !local), line.Name == "" && !local:
			continue
		case !local && line.State == Failed:
			line.Text = withheld
		case !local:
			line.Text = "ok"
		}
		_, _ = fmt.Fprintln(w, line)
		told++
	}
	if told == 0 && good {
		_, _ = fmt.Fprintln(w, "ok")
	} else if told == 0 {
		_, _ = fmt.Fprintln(w, withheld)
	}
}
