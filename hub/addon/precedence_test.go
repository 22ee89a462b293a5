package addon_test

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/command"
)

// Shows: hub/config-precedence
func TestThePrecedenceOfConfigurationsIsLastOrFirst(t *testing.T) {
	precedence := addon.LastCounts
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.AddConfigPrecedence(f, (*string)(&precedence))
	require.NoError(t, precedence.Check())
	require.NoError(t, f.Parse([]string{"--config-precedence=First"}))
	assert.Equal(t, addon.FirstCounts, precedence)
	require.NoError(t, precedence.Check())
	for _, wrong := range []addon.Precedence{"", "last", "Merge"} {
		require.ErrorContains(t, wrong.Check(), "is neither Last nor First")
	}
}
