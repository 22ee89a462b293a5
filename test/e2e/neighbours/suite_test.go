package neighbours

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSuiteIsWellFormed(t *testing.T) {
	s := New()
	require.NoError(t, s.Check())
	for _, scenario := range s.Scenarios {
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, scenario.Name)
		assert.NotEmpty(t, scenario.Doc, scenario.Name)
		assert.NotNil(t, scenario.Run, scenario.Name)
	}
}
