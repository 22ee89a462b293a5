package decode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/spokelet/spokelet/internal/watch"
)

// maxReported is for how many objects a source remembers that they were reported.
const maxReported = 1000

// source is one informer.
type source struct {
	objects *Objects
	kind    kind
	// careful reports whether events are taken apart: the last list had to be.
	careful atomic.Bool
	ends    sync.Once

	mu sync.Mutex
	// bad are the objects that could not be decoded.
	bad map[types.NamespacedName]Bad
	// reported are the versions that were reported.
	reported map[types.NamespacedName]string
	// failure is the last answer to a list or watch unless it worked, since when the first of an unbroken run was.
	failure error
	since   time.Time
}

// wrap returns a ListerWatcher that lists as a whole, and takes apart what cannot be decoded like that.
func (s *source) wrap(below toolscache.ListerWatcher) toolscache.ListerWatcher {
	to := toolscache.ToListerWatcherWithContext(below)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			s.ends.Do(func() { context.AfterFunc(ctx, func() { s.objects.drop(s) }) })
			list, err := to.ListWithContext(ctx, o)
			switch {
			case err == nil && o.Continue == "" && !watch.IsForVersion(o):
				s.careful.Store(false)
				s.forgetAll()
			case undecodable(ctx, err):
				s.careful.Store(true)
				list, err = to.ListWithContext(apart(ctx, s), o)
			}
			s.note(ctx, err)
			return list, err // the informer looks at the error of the API server
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			s.ends.Do(func() { context.AfterFunc(ctx, func() { s.objects.drop(s) }) })
			within := ctx
			if s.careful.Load() {
				within = apart(ctx, s)
				if o.SendInitialEvents != nil && *o.SendInitialEvents {
					s.forgetAll()
				}
			}
			events, err := to.WatchWithContext(within, o)
			s.note(ctx, err)
			return events, err // likewise
		},
	}
}

// undecodable reports whether a list may have failed because an item cannot be decoded: the API server answered, and
// not with an error.
func undecodable(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	var network *url.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &status) && !errors.As(err, &network)
}

// learn notes what came of decoding an object, and reports a bad one once per version.
func (s *source) learn(ctx context.Context, v verdict) {
	if !v.bad {
		s.forget(v.about.Key)
		return
	}
	s.objects.seen.Store(true)
	s.mu.Lock()
	if s.bad == nil {
		s.bad, s.reported = map[types.NamespacedName]Bad{}, map[types.NamespacedName]string{}
	}
	_, had := s.bad[v.about.Key]
	s.bad[v.about.Key] = v.about
	isNew := s.reported[v.about.Key] != v.about.Version
	if len(s.reported) >= maxReported {
		clear(s.reported)
	}
	s.reported[v.about.Key] = v.about.Version
	s.mu.Unlock()
	if !had {
		s.objects.count(s.kind.gvk.Kind, 1)
	}
	if isNew {
		s.objects.report(ctx, v.about)
	}
}

// forget removes an object that is gone or good.
func (s *source) forget(key types.NamespacedName) {
	s.mu.Lock()
	_, had := s.bad[key]
	delete(s.bad, key)
	s.mu.Unlock()
	if had {
		s.objects.count(s.kind.gvk.Kind, -1)
	}
}

// forgetAll removes all objects, because a new list tells which there are.
func (s *source) forgetAll() {
	s.mu.Lock()
	n := len(s.bad)
	clear(s.bad)
	s.mu.Unlock()
	s.objects.count(s.kind.gvk.Kind, -n)
}

// note remembers since when lists or watches fail; nil is one that works.
func (s *source) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the end of a watch says nothing about the API server
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.since = time.Time{}
	case s.failure == nil:
		s.since = s.objects.Clock.Now()
	}
	s.failure = err
}

// failing returns why the kind cannot be listed or watched for at least a time; nil when it can.
func (s *source) failing(patience time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil || s.objects.Clock.Since(s.since) < patience {
		return nil
	}
	return fmt.Errorf("%s cannot be listed or watched since %s: %w", s.kind.gvk.Kind,
		s.since.UTC().Format(time.RFC3339), s.failure)
}

// all returns the objects that could not be decoded.
func (s *source) all() []Bad {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.bad))
}
