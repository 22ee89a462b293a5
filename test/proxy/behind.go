package proxy

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// keepSeen is how long versions are kept: longer than any API server is behind, and shorter than etcd keeps them.
const keepSeen = time.Minute

// errStalled is the error that a client gets at the end of a connection that hung.
var errStalled = errors.New("the connection was half open")

// version is a version of the API server, and when it was the present one.
type version struct {
	at   time.Time
	text string
}

// Saw tells the present version of the API server, so that an earlier state can be shown later.
func (l *Liar) Saw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	first := 0
	for first < len(l.seen) && now.Sub(l.seen[first].at) > keepSeen {
		first++
	}
	l.seen = append(l.seen[first:len(l.seen):len(l.seen)], version{at: now, text: text})
}

// earlier returns the answer to a list from an API server that is behind; nil means that the first one answers.
func (l *lying) earlier(a *asked) *http.Response {
	query := a.URL.Query()
	least := query.Get("resourceVersion")
	if a.lies.Behind == 0 || least == "" || query.Get("resourceVersionMatch") == "Exact" || !isCollection(a.URL.Path) ||
		!hits(a.random, a.lies.Behind) {
		return nil
	}
	at := l.versionAt(time.Now().Add(-a.lies.BehindBy))
	if at == "" {
		return nil
	}
	if least != "0" && older(at, least) {
		at = least // one that is further behind waits until it has that
	}
	query.Set("resourceVersion", at)
	query.Set("resourceVersionMatch", "Exact")
	r := a.Clone(a.Context())
	r.URL.RawQuery = query.Encode()
	response, err := l.to.RoundTrip(r)
	if err != nil {
		return nil
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil
	}
	l.tell("behind")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind[a.client+" "+a.URL.Path] = time.Now().Add(a.lies.BehindBy)
	return response
}

// versionAt returns the last version that is not newer than an instant; empty where none is known.
func (l *Liar) versionAt(at time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := ""
	for _, one := range l.seen {
		if one.at.After(at) {
			break
		}
		last = one.text
	}
	return last
}

// lag returns by how much a watch is late because the API server that it goes to is behind.
func (l *Liar) lag(a *asked) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Until(l.behind[a.client+" "+a.URL.Path]))
}

// isCollection reports whether a path is that of a list of objects and not of one object.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) == 0 || parts[0] != "api" && parts[0] != "apis" {
		return false
	}
	if parts = parts[1:]; len(parts) > 0 && parts[0] == "v1" {
		parts = parts[1:] // the core group has no name
	} else if len(parts) >= 2 {
		parts = parts[2:]
	}
	return len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces"
}

// stall holds a request up until the client gives up, the lies end, or the connection does.
func (l *lying) stall(a *asked) error {
	l.tell("stall")
	if writes(a.Request) && hits(a.random, 0.5) {
		response, err := l.to.RoundTrip(a.Request)
		if err != nil {
			return err
		}
		l.note(a.Request, response.StatusCode, a.client)
		_ = response.Body.Close()
	} else if a.Body != nil {
		_ = a.Body.Close()
	}
	s := script{honest: a.honest}
	s.pause(a.Context(), a.lies.HangFor)
	return errStalled
}
