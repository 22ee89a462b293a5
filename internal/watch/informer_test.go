package watch

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// backedUp is an API server whose store can be restored. It is silent to watches from a version that it has yet to reach.
type backedUp struct {
	mu      sync.Mutex
	version string
	objects []corev1.ConfigMap
	watches []*watch.RaceFreeFakeWatcher
	// lists are the versions that lists asked for.
	lists []string
}

// IsWatchListSemanticsUnSupported tells that lists are not streamed.
func (*backedUp) IsWatchListSemanticsUnSupported() bool { return true }

func (b *backedUp) List(options metav1.ListOptions) (runtime.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists = append(b.lists, options.ResourceVersion)
	if len(options.ResourceVersion) > len(b.version) {
		late := apierrors.NewTimeoutError("Too large resource version", 1)
		late.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, late
	}
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: b.version}, Items: b.objects}, nil
}

func (b *backedUp) Watch(metav1.ListOptions) (watch.Interface, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := watch.NewRaceFreeFake()
	b.watches = append(b.watches, events)
	return events, nil
}

// become changes the store and interrupts all watches.
func (b *backedUp) become(version string, objects ...corev1.ConfigMap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version, b.objects = version, objects
	for _, one := range b.watches {
		one.Stop()
	}
	b.watches = nil
}

// edit tells all watches of a change.
func (b *backedUp) edit(object corev1.ConfigMap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.watches {
		one.Modify(&object)
	}
}

func (b *backedUp) listed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lists)
}

func (b *backedUp) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.watches) > 0
}

// Shows: work/first-list, work/restored-cache
func TestACacheNoticesAStoreThatWasRestored(t *testing.T) {
	object := func(version, says string) corev1.ConfigMap {
		return corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}, Data: map[string]string{"k": says},
		}
	}
	server := &backedUp{}
	server.become("5000", object("4999", "lost"))
	informer := NewInformer(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(t.Context())
	}()
	t.Cleanup(func() { <-ended })
	says := func(what string) func() bool {
		return func() bool {
			live, found, err := informer.GetStore().GetByKey("ns/a")
			if err != nil || !found {
				return false
			}
			configMap, isOne := live.(*corev1.ConfigMap)
			return isOne && configMap.Data["k"] == what
		}
	}
	require.Eventually(t, says("lost"), time.Minute, time.Millisecond)
	require.Eventually(t, server.watched, time.Minute, time.Millisecond)
	assert.Equal(t, []string{""}, server.listed(), "it begins with the present state")
	server.edit(object("5001", "lost, too")) // a watch that ended without any event is not continued anyway
	require.Eventually(t, says("lost, too"), time.Minute, time.Millisecond)
	server.become("100", object("90", "restored"))
	assert.Eventually(t, says("restored"), time.Minute, time.Millisecond)
}
