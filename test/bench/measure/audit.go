package measure

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// event holds what is read of a line of an audit log. The user is the one that authenticated, even if it impersonates
// another.
type event struct {
	Verb     string    `json:"verb"`
	Stage    string    `json:"stage"`
	Received time.Time `json:"requestReceivedTimestamp"`
	User     struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// kind names what a request does, such as "patch managedclusteraddons/status".
func (e event) kind() string {
	kind := e.Verb + " " + e.Object.Resource
	if e.Object.Subresource != "" {
		kind += "/" + e.Object.Subresource
	}
	return kind
}

// Requests are the requests of one user.
type Requests struct {
	// Count is their number, leases and watches aside, and Conflicts how many of them lost a race (409).
	Count, Conflicts int
	// Last is when the API server received the last of them.
	Last time.Time
	// Kinds is Count by verb and resource, such as "patch managedclusteraddons/status".
	Kinds map[string]int
	// Watches are the resources that the user has begun to watch.
	Watches map[string]int
}

// Since returns what came after an earlier state of the same user.
func (r Requests) Since(before Requests) Requests {
	return Requests{
		Count: r.Count - before.Count, Conflicts: r.Conflicts - before.Conflicts, Last: r.Last,
		Kinds: difference(r.Kinds, before.Kinds), Watches: difference(r.Watches, before.Watches),
	}
}

// String lists the kinds, the most frequent first.
func (r Requests) String() string {
	kinds := slices.Sorted(maps.Keys(r.Kinds))
	slices.SortStableFunc(kinds, func(a, b string) int { return r.Kinds[b] - r.Kinds[a] })
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", r.Kinds[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// difference subtracts counts; what did not grow is left out.
func difference(after, before map[string]int) map[string]int {
	grown := map[string]int{}
	for key, n := range after {
		if more := n - before[key]; more > 0 {
			grown[key] = more
		}
	}
	return grown
}

// Audit counts requests by user in the audit log of an API server, which grows meanwhile. It reads each line once.
type Audit struct {
	path   string
	offset int64
	users  map[string]*Requests
}

// NewAudit returns the counts of an audit log.
func NewAudit(path string) *Audit { return &Audit{path: path, users: map[string]*Requests{}} }

// Of reads what was added to the log and returns the requests of a user so far.
func (a *Audit) Of(user string) (Requests, error) {
	if err := a.read(); err != nil {
		return Requests{}, fmt.Errorf("reading the audit log: %w", err)
	}
	found := a.users[user]
	if found == nil {
		return Requests{}, nil
	}
	return Requests{
		Count: found.Count, Conflicts: found.Conflicts, Last: found.Last,
		Kinds: maps.Clone(found.Kinds), Watches: maps.Clone(found.Watches),
	}, nil
}

// read counts the complete lines that were added.
func (a *Audit) read() error {
	log, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(log, Mebibyte)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of the last line is on its way
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		a.add(line)
	}
}

// add counts one line.
func (a *Audit) add(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Object.Resource == "leases" {
		return
	}
	user := a.users[e.User.Username]
	if user == nil {
		user = &Requests{Kinds: map[string]int{}, Watches: map[string]int{}}
		a.users[e.User.Username] = user
	}
	switch {
	case e.Verb == "watch":
		// Where the policy logs the begin of watches, their end comes as a second line.
		if e.Stage == "ResponseStarted" {
			user.Watches[e.Object.Resource]++
		}
		return
	case e.Stage != "ResponseComplete" && e.Stage != "Panic":
		return
	}
	user.Count++
	user.Kinds[e.kind()]++
	if e.Response.Code == 409 {
		user.Conflicts++
	}
	if e.Received.After(user.Last) {
		user.Last = e.Received
	}
}

// Audits are those of several API servers, by their name.
type Audits map[string]*Audit

// Written counts what users have written so far, by API server, user, verb and resource. It takes the users of each API
// server.
func (a Audits) Written(users map[string][]string) (map[string]int, error) {
	all := map[string]int{}
	for plane, of := range users {
		for _, user := range of {
			requests, err := a[plane].Of(user)
			if err != nil {
				return nil, fmt.Errorf("counting what %s wrote on %s: %w", user, plane, err)
			}
			for kind, n := range requests.Writes() {
				all[plane+": "+user+": "+kind] = n
			}
		}
	}
	return all, nil
}
