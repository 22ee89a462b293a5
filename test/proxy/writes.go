package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// keptWrites is how many requests that wrote are kept.
const keptWrites = 500

// Write is a request that wrote, as the API server answered it.
type Write struct {
	At                   time.Time
	Client, Method, Path string
	Code                 int
}

// Writes returns the last requests that wrote, but for those that wrote leases, Events and reviews.
func (l *Liar) Writes() []Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.wrote)
}

// note notes a request that wrote.
func (l *Liar) note(r *http.Request, code int, client string) {
	if !writes(r) || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") ||
		strings.HasSuffix(r.URL.Path, "reviews") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := Write{At: time.Now(), Client: client, Method: r.Method, Path: r.URL.Path, Code: code}
	l.wrote = append(l.wrote[max(0, len(l.wrote)-keptWrites):], one)
}
