package health

import "sync"

// Ready is the state in which the agent does its work.
const Ready = "serving"

// Cluster is how another cluster responds: the hub, or the managed cluster in hosted mode.
type Cluster interface {
	// Outage describes the outage of the cluster; empty when it responds.
	Outage() string
	// Explains reports whether an error follows from the cluster not responding.
	Explains(err error) bool
}

// State is what the agent is doing, in a few words. The zero value is an agent that starts.
type State struct {
	mu   sync.Mutex
	text string
	// standby is set where the agent is not serving, and does everything that it can do now.
	standby bool
	// hub is the connection in use; nil while the agent has no credential for a hub.
	hub Cluster
	// spoke is the connection to the managed cluster; nil where the agent runs on it.
	spoke Cluster
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

// Explains reports whether an error follows from an outage of the hub or the managed cluster.
func (s *State) Explains(err error) bool {
	s.mu.Lock()
	hub, spoke := s.hub, s.spoke
	s.mu.Unlock()
	return hub != nil && hub.Explains(err) || spoke != nil && spoke.Explains(err)
}

// snapshot is the state at one moment.
type snapshot struct {
	// text is what the agent is doing.
	text string
	// ready reports whether it does everything that it can do.
	ready bool
	// connected reports whether there is a connection to a hub, outage describes its outage; empty when it responds.
	connected bool
	outage    string
	// hosted reports whether there is a connection to a managed cluster elsewhere, spokeOutage describes its outage.
	hosted      bool
	spokeOutage string
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
	return now
}

// lines are what the agent is doing, and below it the outages of the hub and the managed cluster.
func (s snapshot) lines() []string {
	lines := []string{s.text}
	for _, outage := range []string{s.outage, s.spokeOutage} {
		if outage != "" {
			lines = append(lines, outage)
		}
	}
	return lines
}

// checks are the same as the verbose output of an API server.
func (s snapshot) checks() []string {
	mark := func(good bool, name, text string) string {
		if good {
			return "[+]" + name + " " + text
		}
		return "[-]" + name + " " + text
	}
	lines := []string{mark(s.ready, "agent", s.text)}
	switch {
	case s.outage != "":
		lines = append(lines, mark(false, "hub", s.outage))
	case s.connected:
		lines = append(lines, mark(true, "hub", "ok"))
	}
	switch {
	case s.spokeOutage != "":
		lines = append(lines, mark(false, "managed-cluster", s.spokeOutage))
	case s.hosted:
		lines = append(lines, mark(true, "managed-cluster", "ok"))
	}
	return lines
}
