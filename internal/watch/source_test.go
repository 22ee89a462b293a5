package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAWatchThatWasCutOffGoesOnOnlyWhereItWas(t *testing.T) {
	for name, c := range map[string]struct {
		// timeout is that of the watch before, in seconds.
		timeout int64
		version string
		refused error
		initial bool
		want    error
		lists   int
	}{
		"a store that goes on":                   {timeout: 300, version: "500", lists: 1},
		"a store that went further":              {timeout: 300, version: "600", lists: 1},
		"a store that went back":                 {timeout: 300, version: "499", want: errRestored, lists: 1},
		"a store whose versions are no numbers":  {timeout: 300, version: "abc", lists: 1},
		"an API server that is away":             {timeout: 300, refused: context.DeadlineExceeded, want: context.DeadlineExceeded, lists: 1},
		"a watch that ended at its time":         {timeout: 0, version: "1"},
		"a watch that lists what there is first": {timeout: 300, version: "1", initial: true},
	} {
		t.Run(name, func(t *testing.T) {
			lists := 0
			var watches []*watch.FakeWatcher
			source := From(nil,
				func(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
					lists++
					assert.Empty(t, options.ResourceVersion, "the latest is read")
					assert.EqualValues(t, 1, options.Limit)
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: c.version}}, c.refused
				},
				func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					watches = append(watches, watch.NewFake())
					return watches[len(watches)-1], nil
				})
			both, ok := source.listWatch(clocktesting.NewFakePassiveClock(epoch)).(cache.ListerWatcherWithContext)
			require.True(t, ok)
			_, err := both.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "500", TimeoutSeconds: &c.timeout})
			require.NoError(t, err, "the first watch continues no other")
			again := metav1.ListOptions{ResourceVersion: "500", TimeoutSeconds: ptr.To(int64(300))}
			if c.initial {
				again.SendInitialEvents = ptr.To(true)
			}
			_, err = both.WatchWithContext(t.Context(), again)
			assert.Equal(t, c.lists, lists)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				require.Len(t, watches, 2)
				assert.True(t, watches[1].IsStopped(), "what it shows is not believed")
				return
			}
			require.NoError(t, err)
			require.Len(t, watches, 2)
			assert.False(t, watches[1].IsStopped())
		})
	}
}

func TestACheckCostsNoFurtherOnes(t *testing.T) {
	const roundTrip, lasts = 20 * time.Millisecond, int64(300)
	now := clocktesting.NewFakeClock(epoch)
	lists := 0
	source := From(nil,
		func(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			lists++
			now.Step(roundTrip)
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
		},
		func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			now.Step(roundTrip)
			return watch.NewFake(), nil
		})
	both, ok := source.listWatch(now).(cache.ListerWatcherWithContext)
	require.True(t, ok)
	for _, then := range []time.Duration{20 * time.Second, 300 * time.Second, 300 * time.Second} {
		began := now.Now()
		_, err := both.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "10", TimeoutSeconds: ptr.To(lasts)})
		require.NoError(t, err)
		now.SetTime(began.Add(roundTrip/2 + then + roundTrip/2)) // from when the request arrived until the end did
	}
	_, err := both.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "10", TimeoutSeconds: ptr.To(lasts)})
	require.NoError(t, err)
	assert.Equal(t, 1, lists, "after the watch that was cut off")
}

func TestAWatchThatIsStoppedWhileAnEventWaitsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails when a goroutine is left
		from := watch.NewRaceFreeFake()
		events := lookAt(from, func(event watch.Event) watch.Event { return event })
		from.Add(configMap("c"))
		synctest.Wait()
		events.Stop()
		events.Stop()
		assert.True(t, from.IsStopped())
	})
}

// sent is a client that keeps the options of its last request.
type sent struct {
	client.WithWatch
	options client.ListOptions
}

func (s *sent) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	s.options = client.ListOptions{}
	s.options.ApplyOptions(options)
	return nil
}

func (s *sent) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	s.options = client.ListOptions{}
	s.options.ApplyOptions(options)
	return watch.NewEmptyWatch(), nil
}

func TestASourceOfAClientPassesItsOptionsOn(t *testing.T) {
	c := &sent{}
	source := FromClient(c, "ns", func() client.ObjectList { return &corev1.ConfigMapList{} })
	list, err := source.List(t.Context(), metav1.ListOptions{Limit: 7, Continue: "next", FieldSelector: "metadata.name=a"})
	require.NoError(t, err)
	assert.IsType(t, &corev1.ConfigMapList{}, list)
	assert.Equal(t, "ns", c.options.Namespace)
	assert.Equal(t, &metav1.ListOptions{Limit: 7, Continue: "next", FieldSelector: "metadata.name=a"}, c.options.AsListOptions())
	_, err = source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	assert.Equal(t, "ns", c.options.Namespace)
	assert.Equal(t, "5", c.options.AsListOptions().ResourceVersion)
}
