package work

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
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
		"a store that went back":                 {timeout: 300, version: "499", want: errWentBack, lists: 1},
		"an API server that is away":             {timeout: 300, refused: context.DeadlineExceeded, want: context.DeadlineExceeded, lists: 1},
		"a watch that ended at its time":         {timeout: 0, version: "1"},
		"a watch that lists what there is first": {timeout: 300, version: "1", initial: true},
	} {
		t.Run(name, func(t *testing.T) {
			lists, watches := 0, 0
			both := listWatch(clocktesting.NewFakePassiveClock(epoch),
				func(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
					lists++
					assert.Empty(t, options.ResourceVersion, "the latest is read")
					assert.EqualValues(t, 1, options.Limit)
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: c.version}}, c.refused
				},
				func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					watches++
					return watch.NewEmptyWatch(), nil
				})
			_, err := both.WatchFuncWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "500", TimeoutSeconds: &c.timeout})
			require.NoError(t, err, "the first watch is no other's continuation")
			again := metav1.ListOptions{ResourceVersion: "500", TimeoutSeconds: ptr.To(int64(300))}
			if c.initial {
				again.SendInitialEvents = ptr.To(true)
			}
			_, err = both.WatchFuncWithContext(t.Context(), again)
			assert.Equal(t, c.lists, lists)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				assert.Equal(t, 1, watches)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, 2, watches)
		})
	}
}
