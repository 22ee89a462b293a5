// Package meter counts how often the agent of each cluster does something that costs a hub: writes of objects,
// conditions that change their status, and requests for certificates. It finds what no healthy agent does.
//
//   - meter.go keeps the counts of all clusters; account.go has those of one cluster and decides what is a finding.
//
// Counts are per thing, because a rollout writes hundreds of works of one cluster, and none of them often. A cluster
// has counts of a few things only. The one that is least often written makes room for another, so that a thing that is
// written all the time keeps its count between many that are not. What an agent spreads over many things, or hides
// among others that are nearly as busy, shows in the sum.
//
// A finding begins when a count is above its limit and ends after a whole window with at most half of the limit. So it
// changes at most once in a window, whatever the agent does. Counts are kept in memory only: Reading.Since says since
// when.
package meter

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Rule names what is counted.
type Rule int

const (
	// Writes are writes of an object that leave its spec as it is.
	Writes Rule = iota
	// Flips are changes of the status of conditions of an object.
	Flips
	// Requests are new certificate requests.
	Requests

	rules = iota
)

// Limit is how often a healthy agent does something at most.
type Limit struct {
	// Window is the time in which it is counted.
	Window time.Duration
	// One is the limit for one thing, and All that for all of a cluster together.
	One, All int
}

// Limit returns the limit of a rule. An agent writes the status of a work 5 times at once and then every 5 seconds, 17
// times a minute. A workload that crashes changes conditions a few times a minute. A certificate of ten minutes, the
// shortest that there is, is renewed four times in half an hour; an agent that crashes and asks for a new one each time
// does so six times, as the kubelet waits up to five minutes.
func (r Rule) Limit() Limit {
	switch r {
	case Flips:
		return Limit{Window: 5 * time.Minute, One: 30, All: 1200}
	case Requests:
		return Limit{Window: 30 * time.Minute, One: 5, All: 200}
	case Writes:
	}
	return Limit{Window: time.Minute, One: 120, All: 12_000}
}

// Thing is what something is done to: an object, or the add-on for which certificates are requested. The zero value is
// all that a cluster has.
type Thing struct{ Kind, Name string }

// Finding is something that an agent does more often than a healthy one.
type Finding struct {
	Rule  Rule
	Thing Thing
}

// Reading says what a meter says about a cluster.
type Reading struct {
	// Findings has at most one finding of each rule, in the order of the rules.
	Findings []Finding
	// Next is when one of them may end; zero without findings.
	Next time.Time
	// Since is when the meter began to count. What was before is unknown.
	Since time.Time
}

// Meter counts for all clusters. It can be used by many at once.
type Meter struct {
	clock clock.PassiveClock

	mutex    sync.Mutex
	since    time.Time
	accounts map[string]*account
	swept    time.Duration
}

// New returns a meter that counts from its first use on: a hub manager that does not lead counts nothing.
func New(c clock.PassiveClock) *Meter { return &Meter{clock: c, accounts: map[string]*account{}} }

// Forget forgets a cluster that is gone. Another one may get its name.
func (m *Meter) Forget(cluster string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.accounts, cluster)
}

// Note counts that something was done once to a thing of a cluster, and reports whether that makes a finding.
func (m *Meter) Note(cluster string, rule Rule, thing Thing) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	at := m.at()
	m.sweep(at)
	a := m.accounts[cluster]
	if a == nil {
		a = &account{}
		m.accounts[cluster] = a
	}
	return a.note(at, rule, thing)
}

// Read returns what is found about a cluster.
func (m *Meter) Read(cluster string) Reading {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	at := m.at()
	reading := Reading{Since: m.since}
	if a := m.accounts[cluster]; a != nil {
		var next time.Duration
		if reading.Findings, next = a.read(at); next > 0 {
			reading.Next = m.since.Add(next)
		}
	}
	return reading
}

// at returns the time since the meter began to count.
func (m *Meter) at() time.Duration {
	if m.since.IsZero() {
		m.since = m.clock.Now()
	}
	return m.clock.Since(m.since)
}

// sweep forgets the clusters of which nothing was counted for long, once in the longest window.
func (m *Meter) sweep(at time.Duration) {
	if at < m.swept+Requests.Limit().Window {
		return
	}
	m.swept = at
	for cluster, a := range m.accounts {
		if a.read(at); a.empty() {
			delete(m.accounts, cluster)
		}
	}
}
