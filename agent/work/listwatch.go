package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// errWentBack ends a watch whose version has yet to come, so that its reflector lists anew.
var errWentBack = errors.New("the API server went back to an earlier state")

// listWatch makes a ListWatch of the two methods of a client. A watch that was cut off goes on from its version only if
// the API server has come that far: where its store was restored from a backup meanwhile, the watch would be silent
// until the versions catch up. That costs one small list after each watch that ended before its time.
func listWatch[L runtime.Object](
	now clock.PassiveClock,
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	var ends time.Time // when the last watch was to end by itself; only its reflector calls these functions
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents == nil && now.Now().Before(ends) {
				some, err := list(ctx, metav1.ListOptions{Limit: 1})
				if err != nil {
					return nil, err
				}
				if err := cameThatFar(some, options.ResourceVersion); err != nil {
					return nil, err
				}
			}
			events, err := follow(ctx, options)
			if err == nil && options.TimeoutSeconds != nil {
				ends = now.Now().Add(time.Duration(*options.TimeoutSeconds) * time.Second)
			}
			return events, err
		},
	}
}

// cameThatFar returns an error when a list is older than a version.
func cameThatFar(list runtime.Object, version string) error {
	read, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("reading the version of a list: %w", err)
	}
	if olderVersion(read.GetResourceVersion(), version) {
		return errWentBack
	}
	return nil
}
