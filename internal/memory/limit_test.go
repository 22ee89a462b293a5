package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Shows: registration/memory-limit
func TestTheRuntimeStaysBelowTheContainer(t *testing.T) {
	const mebi = 1 << 20
	tests := map[string]struct{ limit, want uint64 }{
		"as shipped for the agent":     {128 * mebi, 96 * mebi},
		"as shipped for the hub":       {512 * mebi, 512*mebi - 512*mebi/10},
		"at least half of a small one": {40 * mebi, 20 * mebi},
		"none":                         {0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, usable(tc.limit)) })
	}
}
