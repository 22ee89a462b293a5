package work_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// hubView holds what the agent gets of the works of the hub.
type hubView struct {
	mu sync.Mutex
	// lists, reads and statuses tell which requests fail: lists and watches, reads of one work, writes of a status.
	lists, reads, statuses bool
	// watches ends the watches that are open; refused counts the reads that failed.
	watches []context.CancelFunc
	refused int
}

// view lets a test choose what the agent gets of the works of the hub.
func (e *env) view() *hubView {
	v := &hubView{}
	e.settings.hubFault = func(req *http.Request) error {
		_, rest, works := strings.Cut(req.URL.Path, "/manifestworks")
		if !works {
			return nil
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		switch {
		case rest == "" && v.lists, strings.HasSuffix(rest, "/status") && v.statuses:
			return errors.New("the hub is away")
		case rest != "" && req.Method == http.MethodGet && v.reads:
			v.refused++
			return errors.New("the hub is away")
		case rest == "":
			ctx, cancel := context.WithCancel(req.Context())
			*req = *req.WithContext(ctx)
			v.watches = append(v.watches, cancel)
		}
		return nil
	}
	return v
}

// set changes what the agent gets; open watches end when lists fail.
func (v *hubView) set(change func(*hubView)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(v)
	if v.lists {
		for _, end := range v.watches {
			end()
		}
		v.watches = nil
	}
}

// restoreHub removes a work as if the hub were restored from a backup without it: the agent sees it, and then sees
// nothing, and never that it is deleted.
func (e *env) restoreHub(v *hubView, w *workv1.ManifestWork) {
	e.Helper()
	v.set(func(v *hubView) { v.lists = true })
	e.vanish(w)
	v.set(func(v *hubView) { v.lists = false })
}

// Shows: work/eviction-needs-hub
func TestAnObjectMadeAnewHasItsGraceWhenItsWorkVanishes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	v := e.view()
	a := e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.settled(w)
	e.quiet(a)
	first := e.applied()
	require.NoError(t, e.Delete(t.Context(), first))
	e.eventually("the spoke is rebuilt", func() bool {
		var again workv1.AppliedManifestWork
		return e.get(&again, "", first.Name) && again.UID != first.UID && len(again.Status.AppliedResources) == 1
	})
	_, before := e.quiet(a)
	uid := e.mapUID("a")
	require.NotEmpty(t, uid)

	e.restoreHub(v, w)
	e.eventually("its grace begins", func() bool {
		var applied workv1.AppliedManifestWork
		return e.get(&applied, "", first.Name) && applied.Status.EvictionStartTime != nil
	})
	assert.Equal(t, uid, e.mapUID("a"))
	assert.Empty(t, writes(a.hub.since(before)), "the status was right all the time")
}

// TestWhatWasMadeForAWorkThatVanishedGoesOnTheWordOfTheHub lets a work vanish in the moment in which its objects were
// made, and the hub not answer when it is asked for it.
//
// Shows: work/created-meanwhile, work/eviction-needs-hub
func TestWhatWasMadeForAWorkThatVanishedGoesOnTheWordOfTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	v := e.view()
	v.statuses = true
	e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	e.eventually("its object is made and listed", func() bool {
		var applied workv1.AppliedManifestWork
		return e.get(&applied, "", e.settings.hubHash+"-w") && len(applied.Status.AppliedResources) == 1
	})
	v.set(func(v *hubView) { v.reads = true })
	e.restoreHub(v, w)
	e.eventually("the hub is asked", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.refused > 1
	})
	assert.NotEmpty(t, e.mapUID("a"), "a hub that does not answer takes nothing down")
	v.set(func(v *hubView) { v.reads = false })
	e.eventually("what was made goes, without a grace", func() bool {
		return !e.get(&workv1.AppliedManifestWork{}, "", e.settings.hubHash+"-w") && !e.get(&corev1.ConfigMap{}, e.cluster, "a")
	})
}
