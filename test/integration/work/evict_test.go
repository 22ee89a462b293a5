package work_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work"
)

// vanish removes a work from the hub as if it had never been.
func (e *env) vanish(w *workv1.ManifestWork) {
	e.Helper()
	for _, patch := range []string{
		`{"metadata":{"finalizers":["` + hold + `"]}}`, "", `{"metadata":{"finalizers":null}}`,
	} {
		if patch == "" {
			require.NoError(e, e.Delete(e.Context(), w))
			continue
		}
		require.NoError(e, e.Patch(e.Context(), w, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
}

// applyAndStop has an agent apply a work with the ConfigMap a, and stops it when all is quiet.
func (e *env) applyAndStop() *workv1.ManifestWork {
	e.Helper()
	a := e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	a.stop()
	return w
}

// Shows: work/eviction-stops
func TestAWorkThatComesBackStopsItsEviction(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := e.applyAndStop()
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "a"))
	was := cm.UID
	e.vanish(w)
	e.start()
	e.eventually("its grace begins", func() bool { return e.applied().Status.EvictionStartTime != nil })
	e.create(e.work("w", e.configMap("a", nil)))
	e.eventually("its grace ends", func() bool { return e.applied().Status.EvictionStartTime == nil })
	require.True(t, e.get(&cm, e.cluster, "a"))
	assert.Equal(t, was, cm.UID)
}

// Shows: work/evicted-after-grace
func TestEvictionWaitsForItsWholeGrace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.grace = 3 * time.Second
	w := e.applyAndStop()
	e.vanish(w)
	began := time.Now()
	e.start()
	e.eventually("it is evicted", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", e.settings.hubHash+"-w")
	})
	assert.GreaterOrEqual(t, time.Since(began), e.settings.grace)
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// Shows: work/eviction-off
func TestEvictionMayBeOff(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.grace = time.Hour
	w := e.applyAndStop()
	e.vanish(w)
	second := e.start()
	e.eventually("its grace begins", func() bool { return e.applied().Status.EvictionStartTime != nil })
	second.stop()
	e.settings.grace = work.EvictionDisabled
	third := e.start()
	e.eventually("the mark is taken away", func() bool { return e.applied().Status.EvictionStartTime == nil })
	e.quiet(third)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
}

// Shows: work/eviction-needs-hub
func TestEvictionNeedsAHubThatAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := e.applyAndStop()
	e.vanish(w)

	// A hub that was set up again does not know the agent: it answers, but it lists no works.
	e.settings.grace = time.Second
	known := e.settings.hub
	stranger, err := plane.User("stranger-" + e.cluster)
	require.NoError(t, err)
	e.settings.hub = stranger
	lost := e.start()
	e.eventually("the agent has asked for the works", func() bool { return lost.hub.count() >= 3 })
	assert.Nil(t, e.applied().Status.EvictionStartTime)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	lost.stop()

	// Nor does one that stops answering in the end.
	e.settings.hub = known
	var asked atomic.Int32
	e.settings.hubFault = func(req *http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/manifestworks/w") {
			asked.Add(1)
			return errors.New("the hub is away")
		}
		return nil
	}
	away := e.start()
	e.eventually("the grace began", func() bool { return e.applied().Status.EvictionStartTime != nil })
	e.eventually("the hub was asked at its end, again and again", func() bool { return asked.Load() >= 3 })
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "a"))
	away.stop()
	e.settings.hubFault = nil
	e.start()
	e.eventually("it is evicted", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", e.settings.hubHash+"-w")
	})
}
