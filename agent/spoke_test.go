package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Shows: registration/apiserver-may-fail
func TestAHostedAgentProbesItsClusterAlsoWhenNothingFails(t *testing.T) {
	for kubeconfig, every := range map[string]time.Duration{"": 0, "/spoke/config/kubeconfig": time.Minute} {
		a := &agent{config: Config{Period: time.Minute, SpokeKubeconfig: kubeconfig}}
		require.NoError(t, a.useSpoke(&rest.Config{Host: "https://spoke.example.com"}))
		assert.Equal(t, every, a.spokeHealth.Every, "Leases show that the storage of the own cluster answers (%q)", kubeconfig)
	}
}
