package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Another controller schedules, and its Placement tolerates silent clusters for five minutes, after which it drops c1,
// whose agent is silent, and is ended itself. The agent comes back for a moment and is silent again: the taint is a new
// one, which is tolerated for five minutes more. Nobody has decided because of it.
func TestAnotherTaintIsNotThatForWhichAClusterWasDropped(t *testing.T) {
	h := newPagesHub(t, false, 0, func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{
			Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: new(int64(300)),
		}}
	})
	h.goesSilent()
	h.passes(5 * time.Minute)
	h.othersDrop()
	h.passes(4 * time.Minute)
	require.Empty(t, h.removed, "it is not available")
	h.comesBack()
	h.passes(30 * time.Second)
	require.Empty(t, h.removed, "it was dropped because it was not available")
	h.goesSilent()
	h.passes(24 * time.Hour)
	assert.Empty(t, h.removed, "nobody has decided since it came back")
}
