package addon

import (
	"context"
	"fmt"
)

// Registry finds an Agent among several lookups; the first that knows the add-on wins. The zero value knows none.
type Registry []Lookup

// Agent implements Lookup. A lookup that fails ends the search, because a later one must not answer in its place.
func (r Registry) Agent(ctx context.Context, name string) (Agent, bool, error) {
	for _, lookup := range r {
		agent, found, err := lookup.Agent(ctx, name)
		if err != nil {
			return nil, false, fmt.Errorf("looking for the agent of add-on %s: %w", name, err)
		}
		if found {
			return agent, true, nil
		}
	}
	return nil, false, nil
}

// Fixed is a Lookup over a fixed set of agents.
type Fixed map[string]Agent

// NewFixed returns a Lookup over the given agents. Duplicate or empty names are an error.
func NewFixed(agents ...Agent) (Fixed, error) {
	fixed := make(Fixed, len(agents))
	for _, agent := range agents {
		name := agent.About().Name
		if name == "" {
			return nil, fmt.Errorf("agent %T has no name", agent)
		}
		if _, taken := fixed[name]; taken {
			return nil, fmt.Errorf("two agents have the name %s", name)
		}
		fixed[name] = agent
	}
	return fixed, nil
}

// Agent implements Lookup.
func (f Fixed) Agent(_ context.Context, name string) (Agent, bool, error) {
	agent, found := f[name]
	return agent, found, nil
}
