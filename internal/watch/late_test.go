package watch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// The store was put back while a watch was open, and the end of the watch came late.
//
// Shows: work/restored-cache
func TestAStoreThatIsPutBackBehindAWatchThatEndsLateIsNoticed(t *testing.T) {
	const lasts = int64(300)
	for name, then := range map[string]time.Duration{
		"the watch was cut off (control)":                                      10 * time.Second,
		"a proxy whose API server is dead closes the connection when it notes": 340 * time.Second,
		"the machine slept for eight hours":                                    8 * time.Hour,
		"the clock, which was behind, is set while the watch is cut off":       24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			now, version, lists := clocktesting.NewFakeClock(epoch), "500", 0
			source := From(nil,
				func(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
					lists++
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
				},
				func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil })
			both, ok := source.listWatch(now).(cache.ListerWatcherWithContext)
			require.True(t, ok)
			options := metav1.ListOptions{ResourceVersion: "500", TimeoutSeconds: ptr.To(lasts)}
			_, err := both.WatchWithContext(t.Context(), options)
			require.NoError(t, err)
			version = "5" // an older backup
			now.Step(then)
			_, err = both.WatchWithContext(t.Context(), options)
			require.ErrorIs(t, err, errRestored)
			assert.Equal(t, 1, lists)
		})
	}
}

// The same for a whole Watch: it is silent for as long as the versions take to catch up.
func TestAWatchWhoseMachineSleptNoticesAStoreThatWasPutBack(t *testing.T) {
	for name, eventsOnly := range kinds {
		t.Run(name, func(t *testing.T) {
			r := start(t, &server{version: "10"}, func(w *Watch[*corev1.ConfigMap]) { w.Source.EventsOnly = eventsOnly })
			r.opens(t)
			r.open().Add(configMap("c"))
			require.Eventually(t, func() bool { return count(r.read(), "update") == 1 }, patience, tick)
			r.set(func(s *server) { s.version = "5" })
			r.clock.Step(8 * time.Hour)
			r.open().Stop() // the connection is reset when the machine wakes up
			assert.True(t, r.passes(t, 10*time.Minute, func() bool { return count(r.read(), "replace at 5") > 0 }))
		})
	}
}
