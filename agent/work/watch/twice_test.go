package watch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/fake"
)

// A wide watch is cut off because the store of its API server was put back.
func TestARestoreBehindAWideWatchIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := fake.NewTestScheme()
		require.NoError(t, metav1.AddMetaToScheme(scheme))
		c, client := newCluster(), fake.NewSimpleMetadataClient(scheme)
		c.version = "500"
		c.serve(client)
		var mu sync.Mutex
		var told []string
		store, w := NewWatcher(client, Bounds{2, 12 * time.Hour}, func(Owner) {})
		logger := funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(line, "went back") && strings.Contains(line, "all namespaces") {
				told = append(told, time.Now().Format("15:04:05.000 ")+line)
			}
		}, funcr.Options{})
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logger))
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		h := Owner{Name: "w"}
		store.Claim(h, spread(4), nil)
		read := func(version string) { // a pass
			for id := range spread(4) {
				state, drift := store.Look(h, id)
				if state.Requested.IsZero() || drift != Unchanged {
					state.Requested, state.Object = time.Now(), Object{Exists: true, UID: "u", Version: version}
					store.Record(h, id, state)
				}
			}
		}
		time.Sleep(time.Minute)
		read("490")
		c.set(func() {
			c.version = "5"
			for _, one := range c.events {
				one.Stop()
			}
		})
		for range 6000 { // passes follow at once
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			read("3")
		}
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, told, 1, "%s", strings.Join(told, "\n"))
	})
}
