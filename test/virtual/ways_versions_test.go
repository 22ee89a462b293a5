package virtual

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// TestTwoVersionsToOneState is TestTwoWaysToOneState with each step written in a version of the add-on API that is
// drawn, on hubs that serve both versions or one of them. The states are compared in each version that a hub serves,
// with the one to which all leads that is written in v1alpha1.
// Shows: invariants/two-versions
// Shows: hub/one-version
func TestTwoVersionsToOneState(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	var straight map[string]string
	onWay(t, func(t *testing.T, w way) {
		t.Helper()
		straight = goStraight(t, w)
	})
	for seed := range *ways {
		api := apis()[seed%len(apis())]
		random := rand.New(rand.NewPCG(uint64(seed), 23))
		lies := random.IntN(2) == 0
		t.Run(fmt.Sprintf("seed %d, lies %t, %s", seed, lies, api), func(t *testing.T) {
			onHub(t, api, func(t *testing.T, w way) {
				t.Helper()
				want := w.among(straight)
				assert.NotEmpty(t, want)
				told, err := w.draws(random).wander(random, lies)
				require.NoError(t, err)
				arrive(t, w, want, told)
			})
		})
	}
}
