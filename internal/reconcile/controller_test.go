package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestOptionsBackOffUpToAMinute(t *testing.T) {
	options := Options(7)
	assert.Equal(t, 7, options.MaxConcurrentReconciles)
	request := ctrl.Request{}
	var waits []time.Duration
	for range 20 {
		waits = append(waits, options.RateLimiter.When(request))
	}
	assert.Equal(t, 20*time.Millisecond, waits[0])
	assert.Equal(t, 40*time.Millisecond, waits[1])
	assert.Equal(t, time.Minute, waits[len(waits)-1])
	assert.IsNonDecreasing(t, waits)
	options.RateLimiter.Forget(request)
	assert.Equal(t, 20*time.Millisecond, options.RateLimiter.When(request))
}
