package hubconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// Shows: registration/hub-given-up
func TestTheWatchdogExpiresAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var expired []time.Time
		w := NewWatchdog(clock.RealClock{}, time.Minute, func(since time.Time) { expired = append(expired, since) })
		ended := make(chan error, 1)
		go func() { ended <- w.Start(t.Context()) }()
		time.Sleep(50 * time.Second) // of the fake clock
		w.Reset()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		assert.Empty(t, expired)
		time.Sleep(time.Second)
		require.NoError(t, <-ended)
		assert.Equal(t, []time.Time{began.Add(50 * time.Second)}, expired)
		assert.Equal(t, began.Add(110*time.Second), time.Now())
	})
}
