package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two packages of tests that run at the same time are two processes, and each has its blocks.
func TestPortsAreHandedOutOnce(t *testing.T) {
	processes := [2]portBlocks{}
	seen := map[int]bool{}
	for range 50 {
		for i := range processes {
			got, err := processes[i].free(5)
			require.NoError(t, err)
			for _, port := range got {
				assert.False(t, seen[port], port)
				seen[port] = true
			}
		}
	}
	assert.Len(t, seen, 500)
	for i := range processes {
		for _, listener := range processes[i].held {
			listener.Close()
		}
	}
}
