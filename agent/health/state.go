package health

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/probe"
)

// Ready is the state in which the agent does its work.
const Ready = "serving"

// Cluster is how another cluster responds: the hub, or the managed cluster in hosted mode.
type Cluster interface {
	// Outage describes the outage of the cluster; empty when it responds.
	Outage() string
	// Since returns when the outage began; zero when it responds.
	Since() time.Time
	// Explains reports whether an error follows from the cluster not responding.
	Explains(err error) bool
}

// Account is the ServiceAccount under which works are applied, where that is another one than the agent's.
type Account interface {
	// Outage says why works cannot be applied under it; empty when they can.
	Outage() string
}

// State holds what the agent is doing, in a few words. The zero value is an agent that starts.
type State struct {
	// Undecodable returns the objects that exist and cannot be decoded. Optional; it is set before the endpoints are
	// served.
	Undecodable func() []decode.Bad

	mu   sync.Mutex
	text string
	// standby is set where the agent is not serving, and does everything that it can do now.
	standby bool
	// hub is the connection in use; nil while the agent has no credential for a hub.
	hub Cluster
	// spoke is the connection to the managed cluster; nil where the agent runs on it.
	spoke Cluster
	// said has the other texts, by what they are about.
	said map[string]string
	// account is nil where works are applied under the agent's own identity.
	account Account
}

// Set sets what the agent is doing now, and reports whether that changed.
func (s *State) Set(text string) bool { return s.set(text, false) }

// StandBy sets that the agent does everything that it can do now, though it does not serve: another one leads, or the
// hub that it has a credential for does not respond. It reports whether that changed.
func (s *State) StandBy(text string) bool { return s.set(text, true) }

func (s *State) set(text string, standby bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.text
	s.text, s.standby = text, standby
	return before != text
}

// Follow makes hub the one that the state includes from now on; nil means none.
func (s *State) Follow(hub Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = hub
}

// FollowSpoke makes spoke the managed cluster that the state includes from now on.
func (s *State) FollowSpoke(spoke Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoke = spoke
}

// FollowAccount makes account the one that the state includes from now on; nil means none.
func (s *State) FollowAccount(account Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account = account
}

// Note sets what is to be said about something, which fails no probe; empty for nothing.
func (s *State) Note(about, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		s.said = map[string]string{}
	}
	if s.said[about] = text; text == "" {
		delete(s.said, about)
	}
}

// Explains reports whether an error follows from an outage of the hub or the managed cluster.
func (s *State) Explains(err error) bool {
	s.mu.Lock()
	hub, spoke := s.hub, s.spoke
	s.mu.Unlock()
	return hub != nil && hub.Explains(err) || spoke != nil && spoke.Explains(err)
}

// snapshot is the state at one moment.
type snapshot struct {
	// text holds what the agent is doing.
	text string
	// ready reports whether it does everything that it can do.
	ready bool
	// connected reports whether there is a connection to a hub, outage describes its outage; empty when it responds.
	connected bool
	outage    string
	// hosted reports whether there is a connection to a managed cluster elsewhere, spokeOutage describes its outage.
	hosted      bool
	spokeOutage string
	// separate reports whether works are applied under another account, accountOutage why they cannot be.
	separate      bool
	accountOutage string
}

func (s *State) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := snapshot{text: s.text, ready: s.standby || s.text == Ready, connected: s.hub != nil}
	if now.text == "" {
		now.text = "starting"
	}
	if s.hub != nil {
		now.outage = s.hub.Outage()
	}
	if now.hosted = s.spoke != nil; now.hosted {
		now.spokeOutage = s.spoke.Outage()
	}
	if now.separate = s.account != nil; now.separate {
		now.accountOutage = s.account.Outage()
	}
	return now
}

// lines are what the agent is doing, and below it the outages of the hub, the managed cluster and the account of works.
func (s snapshot) lines() []probe.Line {
	lines := []probe.Line{{Text: s.text}}
	for _, outage := range []string{s.outage, s.spokeOutage, s.accountOutage} {
		if outage != "" {
			lines = append(lines, probe.Line{Text: outage})
		}
	}
	return lines
}

// checks are the same as the verbose output of an API server.
func (s snapshot) checks() []probe.Line {
	check := func(good bool, name, text string) probe.Line {
		if good {
			return probe.Line{Name: name, Text: text}
		}
		return probe.Line{Name: name, Text: text, State: probe.Failed}
	}
	lines := []probe.Line{check(s.ready, "agent", s.text)}
	for _, other := range []struct {
		name    string
		follows bool
		outage  string
	}{
		{"hub", s.connected, s.outage},
		{"managed-cluster", s.hosted, s.spokeOutage},
		{"account-of-works", s.separate, s.accountOutage},
	} {
		switch {
		case other.outage != "":
			lines = append(lines, check(false, other.name, other.outage))
		case other.follows:
			lines = append(lines, check(true, other.name, "ok"))
		}
	}
	return lines
}

// notes are what is to be said besides, and the objects that cannot be decoded.
func (s *State) notes() []probe.Line {
	var lines []probe.Line
	s.mu.Lock()
	for _, about := range slices.Sorted(maps.Keys(s.said)) {
		lines = append(lines, probe.Line{Name: about, Text: s.said[about], State: probe.Note})
	}
	s.mu.Unlock()
	if s.Undecodable == nil {
		return lines
	}
	for _, bad := range s.Undecodable() {
		lines = append(lines, probe.Line{Name: "watches", Text: "cannot decode " + bad.String(), State: probe.Note})
	}
	return lines
}
