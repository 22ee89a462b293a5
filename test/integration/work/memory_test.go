package work_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
)

// anyWidgets is the definition of widgets that may have any content.
const anyWidgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example}
spec:
  group: %[1]s.example
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestTheObjectsOfAnAuthorTakeLittleMemoryOfTheAgent has works with objects that take some twenty times their bytes when
// they are decoded, be they large on the cluster alone or as manifests. Those of all workers together would take several
// times what the container of the agent leaves beside the rest.
// It has the machine for itself: it looks at the memory of the process.
//
// Shows: work/decode-bounded
func TestTheObjectsOfAnAuthorTakeLittleMemoryOfTheAgent(t *testing.T) {
	const most = 86 << 20
	for sentence, c := range map[string]struct {
		works, objects int
		large          bool
	}{
		"objects into which is merged": {works: 4, objects: 8},
		"large manifests":              {works: 6, objects: 2, large: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := newEnv(t)
			e.allowWidgets()
			require.NoError(t, e.Create(t.Context(), e.unstructuredOf(anyWidgets, e.cluster)))
			widget := func(name, spec string) []byte {
				return fmt.Appendf(nil, `{"apiVersion":"%[1]s.example/v1","kind":"Widget","metadata":{"namespace":"%[1]s",`+
					`"name":%[2]q,"labels":{"a":"b"}},"spec":{"x":[%[3]s{}]}}`, e.cluster, name, spec)
			}
			dense := strings.Repeat("{},", 60_000)
			var works []*workv1.ManifestWork
			for i := range c.works {
				w := e.work(fmt.Sprint("w", i))
				for j := range c.objects {
					name := fmt.Sprintf("o-%d-%d", i, j)
					raw := widget(name, dense)
					if !c.large {
						live := e.unstructuredOf("{}")
						require.NoError(t, live.UnmarshalJSON(raw))
						live.SetLabels(nil)
						e.eventually("the object is made", func() bool { return e.Create(t.Context(), live) == nil })
						raw = widget(name, "")
						raw = []byte(strings.Replace(string(raw), `,"spec":{"x":[{}]}`, "", 1))
					}
					w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{
						RawExtension: kruntime.RawExtension{Raw: raw},
					})
				}
				e.create(w)
				works = append(works, w)
			}
			taken := watchMemory(t)
			e.start()
			for _, w := range works {
				e.settled(w)
			}
			peak := taken()
			t.Logf("%d MiB", peak>>20)
			assert.Less(t, peak, int64(most))
		})
	}
}

// watchMemory returns a function that ends the observation of the heap and returns the most that it took, in bytes beyond
// what it took before. Garbage is collected as in the agent, whose Go runtime knows its limit.
func watchMemory(t *testing.T) func() int64 {
	t.Helper()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	limit := debug.SetMemoryLimit(64 << 20)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	before, peak, stop, over := int64(stats.HeapAlloc), int64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				peak = max(peak, int64(stats.HeapAlloc))
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-over
		return peak - before
	}
}
