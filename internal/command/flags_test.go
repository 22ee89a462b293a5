package command_test

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/command"
)

// Shows: hub/config-precedence
func TestThePrecedenceOfConfigurationsIsLastOrFirst(t *testing.T) {
	precedence := "Last"
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.AddConfigPrecedence(f, &precedence)
	require.NoError(t, command.CheckConfigPrecedence(precedence))
	require.NoError(t, f.Parse([]string{"--config-precedence=First"}))
	assert.Equal(t, "First", precedence)
	require.NoError(t, command.CheckConfigPrecedence(precedence))
	for _, wrong := range []string{"", "last", "Merge"} {
		require.ErrorContains(t, command.CheckConfigPrecedence(wrong), "is neither Last nor First")
	}
}
