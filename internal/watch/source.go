package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errRestored ends a watch whose resource version the API server has yet to reach, so that its reflector lists again.
var errRestored = errors.New("the API server went back to an earlier state")

// Source lists and watches one kind of object.
type Source struct {
	// List and Watch send the requests.
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// LabelSelector and FieldSelector restrict the objects; empty means all.
	LabelSelector, FieldSelector string
	// PageSize is the number of objects of one page of a list where the API server cannot stream it; zero is the default
	// of client-go.
	PageSize int64
	// Client sends the requests; with a fake one the reflector does not stream lists.
	Client any
	// EventsOnly leaves out the objects that exist when the watch begins: Handler receives an empty list with the version
	// after which it is told of every change. A watch that is cut off goes on at its version. Where it does not get on
	// there, at most three times in five minutes, where the API server went back, and after Relist, Handler receives such
	// a list again. List is called for one object of the newest state, however many there are.
	EventsOnly bool
	// Accepted is called each time the API server has accepted the watch; where lists are not streamed, that is after a
	// list that it began with. Optional.
	Accepted func()
	// WentBack is called when an EventsOnly watch finds that the API server is in an earlier state than the watch has
	// seen, before Handler receives a list. Optional.
	WentBack func(ctx context.Context)
	// throttled is called with each refusal of an API server that is overloaded, of which the reflector says nothing;
	// goesOn when a watch is accepted that needs no list. Both come from the goroutine of the reflector. Optional.
	throttled func(ctx context.Context, err error)
	goesOn    func()
	// expired is called when a watch is told that its version is too old, of which the reflector says nothing. Optional.
	expired func()
}

// unstreamed is a client that does not stream lists.
type unstreamed struct{}

// IsWatchListSemanticsUnSupported tells the reflector to list before it watches.
func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// From returns the Source of the list and watch methods of a client.
func From[L runtime.Object](
	c any,
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) Source {
	return Source{
		Client: c, Watch: follow,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, options)
		},
	}
}

// FromClient returns the Source of the objects of a namespace, or of all namespaces if it is empty. The lists that
// newList returns determine the type of the objects.
func FromClient(c client.WithWatch, namespace string, newList func() client.ObjectList) Source {
	return Source{
		Client: c,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			// The client takes limit and continue from its own options only.
			return list, c.List(ctx, list, &client.ListOptions{
				Namespace: namespace, Limit: o.Limit, Continue: o.Continue, Raw: &o,
			})
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, newList(), &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}
}

// anyState is the version with which client-go asks for its first list: an API server may answer with whatever state
// its memory has. After a start, one that lags shows objects as they were, such as a work that was deleted and made
// again.
const anyState = "0"

// listWatch returns what a reflector needs. It begins with the present state, as a streamed list does. A watch that
// was interrupted or refused continues at its resource version only if the API server has reached it: where its store
// was restored from a backup, the watch would be silent until the versions catch up. That costs one small list after
// each watch that ended early.
func (s Source) listWatch(now clock.PassiveClock) cache.ListerWatcher {
	// ends is the instant, in nanoseconds, at which the last watch was to end by itself.
	var ends atomic.Int64
	sender := s.Client
	if s.EventsOnly {
		sender = unstreamed{}
	}
	list := func(ctx context.Context, options metav1.ListOptions) (all runtime.Object, err error) {
		if s.EventsOnly {
			all, err = s.empty(ctx, options.ResourceVersion)
		} else {
			options.LabelSelector, options.FieldSelector = s.LabelSelector, s.FieldSelector
			// With a limit, a version means exactly that one, which a store that was put back does not have.
			if options.ResourceVersion == anyState || options.Limit > 0 && options.Continue == "" {
				options.ResourceVersion = "" // the present one
			}
			all, err = s.List(ctx, options)
		}
		if err == nil && !IsForVersion(options) {
			ends.Store(0) // a watch goes on from what was listed
		}
		return all, err
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: list,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			goesOn := options.SendInitialEvents == nil
			asked := now.Now() // the API server counts the time of a watch from later than that
			due := ends.Load()
			late := time.Duration(asked.UnixNano() - due) // of a watch that did not end by itself it is less than zero, or much
			checks := goesOn && due != 0 && (late < 0 || late > steady)
			options.LabelSelector, options.FieldSelector = s.LabelSelector, s.FieldSelector
			events, err := s.Watch(ctx, options)
			if err == nil && checks { // only now, so that no list goes to an API server that refuses the watch
				some, failed := list(ctx, metav1.ListOptions{Limit: forVersion})
				if err = failed; err == nil {
					err = reached(some, options.ResourceVersion)
				}
				if err != nil {
					events.Stop()
				}
			}
			if err != nil {
				if goesOn {
					ends.Store(math.MaxInt64) // what happens until the next watch is not known
				}
				if apierrors.IsTooManyRequests(err) && s.throttled != nil {
					s.throttled(ctx, err)
				}
				return nil, err
			}
			if options.TimeoutSeconds != nil {
				ends.Store(asked.Add(time.Duration(*options.TimeoutSeconds) * time.Second).UnixNano())
			}
			if goesOn && s.goesOn != nil {
				s.goesOn()
			}
			if s.Accepted != nil {
				s.Accepted()
			}
			return lookAt(events, s.tell), nil
		},
	}, sender)
}

// tell tells of a version that is too old. An accepted watch of which the API server says that it is overloaded ends as
// one that failed: the reflector would ask for the next one without a word, and again as long as that is refused so.
func (s Source) tell(event watch.Event) watch.Event {
	if event.Type != watch.Error {
		return event
	}
	switch err := apierrors.FromObject(event.Object); {
	case apierrors.IsTooManyRequests(err):
		event.Object = &apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	case s.expired != nil && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)):
		s.expired()
	}
	return event
}

// empty returns a list without objects. Its version is the one that was reached if a watch can go on there, and
// else that of the newest state.
func (s Source) empty(ctx context.Context, version string) (runtime.Object, error) {
	list, err := s.List(ctx, metav1.ListOptions{
		LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector, Limit: forVersion,
	})
	if err != nil {
		return nil, err
	}
	read, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("reading the version of a list: %w", err)
	}
	if version != "" && version != "0" {
		switch err := reached(list, version); {
		case err == nil:
			read.SetResourceVersion(version)
		case s.WentBack != nil:
			s.WentBack(ctx)
		}
	}
	read.SetContinue("")
	read.SetRemainingItemCount(nil)
	if err := meta.SetList(list, nil); err != nil {
		return nil, fmt.Errorf("emptying a list: %w", err)
	}
	return list, nil
}

// forVersion is the limit of a list that is only for the version of the state.
const forVersion = 1

// IsForVersion reports whether a list is only for the version of the state: what it has is not all that there is.
func IsForVersion(options metav1.ListOptions) bool { return options.Limit == forVersion }

// reached returns errRestored when a list is older than a resource version. Versions that are no numbers have no order.
func reached(list runtime.Object, version string) error {
	read, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("reading the version of a list: %w", err)
	}
	if order, err := resourceversion.CompareResourceVersion(read.GetResourceVersion(), version); err == nil && order < 0 {
		return errRestored
	}
	return nil
}

// NewInformer makes the informers of a cache of controller-runtime (cache.Options.NewInformer) notice a store that was
// restored, as a Watch does. Without that the cache stays ahead of the API server, and all that reads it works on what
// is no more, until the versions catch up.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	both := cache.ToListerWatcherWithContext(lw)
	source := Source{List: both.ListWithContext, Watch: both.WatchWithContext, Client: lw}
	return cache.NewSharedIndexInformer(source.listWatch(clock.RealClock{}), object, resync, indexers)
}
