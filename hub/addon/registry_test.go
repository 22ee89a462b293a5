package addon_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
)

// named is an agent that only has a name.
type named struct {
	addon.Agent
	name string
}

func (n named) About() addon.About { return addon.About{Name: n.name} }

// failing is a lookup that cannot look.
type failing struct{}

func (failing) Agent(context.Context, string) (addon.Agent, bool, error) {
	return nil, false, errors.New("no connection")
}

func TestRegistry(t *testing.T) {
	fixed := func(names ...string) addon.Fixed {
		var agents []addon.Agent
		for _, name := range names {
			agents = append(agents, named{name: name})
		}
		lookup, err := addon.NewFixed(agents...)
		require.NoError(t, err)
		return lookup
	}
	tests := map[string]struct {
		registry addon.Registry
		found    bool
		fails    bool
	}{
		"nobody":                         {nil, false, false},
		"none of them":                   {addon.Registry{fixed("b"), fixed("c")}, false, false},
		"the second":                     {addon.Registry{fixed("b"), fixed("a")}, true, false},
		"one that fails ends the search": {addon.Registry{failing{}, fixed("a")}, false, true},
		"one that fails is not asked":    {addon.Registry{fixed("a"), failing{}}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			agent, found, err := test.registry.Agent(t.Context(), "a")
			assert.Equal(t, test.fails, err != nil)
			require.Equal(t, test.found, found)
			if found {
				assert.Equal(t, "a", agent.About().Name)
			}
		})
	}
}

func TestNewFixedRefusesBadNames(t *testing.T) {
	_, err := addon.NewFixed(named{name: "a"}, named{name: "a"})
	require.EqualError(t, err, "two agents have the name a")
	_, err = addon.NewFixed(named{})
	require.EqualError(t, err, "agent addon_test.named has no name")
}

func TestErrorsAreFoundInOthers(t *testing.T) {
	notReady := fmt.Errorf("asking: %w", &addon.NotReadyError{Message: "later"})
	invalid := fmt.Errorf("asking: %w", &addon.InvalidError{Message: "never"})
	assert.True(t, addon.IsNotReady(notReady))
	assert.False(t, addon.IsInvalid(notReady))
	assert.True(t, addon.IsInvalid(invalid))
	assert.False(t, addon.IsNotReady(invalid))
	assert.False(t, addon.IsInvalid(nil))
	require.EqualError(t, notReady, "asking: later")
	require.EqualError(t, invalid, "asking: never")
}
