package watch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// outages is an API server with an outage: a load balancer before it answers 503 to everything.
type outages struct {
	mu     sync.Mutex
	away   bool
	denies bool
	// overloaded makes the outage one in which each watch is refused for overload, but lists are answered.
	overloaded bool
	events     []*watch.RaceFreeFakeWatcher
}

var (
	errAway      = apierrors.NewServiceUnavailable("no API server is ready")
	errForbidden = apierrors.NewForbidden(cmWatch().Resource.GroupResource(), "", nil)
	errNotFound  = apierrors.NewNotFound(cmWatch().Resource.GroupResource(), "")
)

func (o *outages) serve(client *fake.FakeMetadataClient) {
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if err := o.err(); err != nil {
			return true, nil, err
		}
		return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}, nil
	})
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if err := o.err(); err != nil {
			return true, nil, err
		}
		if o.away {
			return true, nil, apierrors.NewTooManyRequests("wait", 1)
		}
		events := watch.NewRaceFreeFake()
		o.events = append(o.events, events)
		return true, events, nil
	})
}

func (o *outages) err() error {
	switch {
	case o.away && !o.overloaded:
		return errAway
	case o.denies:
		return errForbidden
	}
	return nil
}

func (o *outages) set(away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
	if away {
		for _, one := range o.events {
			one.Stop()
		}
		o.events = nil
	}
}

// lives runs a watcher through an outage of two minutes and an hour after it, and returns it.
func lives(t *testing.T, server *outages, limit int, claim func(*Store), check func(when string, s *Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := fake.NewTestScheme()
		require.NoError(t, metav1.AddMetaToScheme(scheme))
		client := fake.NewSimpleMetadataClient(scheme)
		server.serve(client)
		store, w := NewWatcher(client, Bounds{limit, 12 * time.Hour}, func(Owner) {})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		claim(store)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		check("before", store)
		server.set(true)
		time.Sleep(2 * time.Minute)
		server.set(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		check("an hour after", store)
	})
}

// Shows: work/watches-wide
func TestAnOutageOfTwoMinutesCostsNoNamespaceItsWatch(t *testing.T) {
	h := Owner{Name: "w"}
	for sentence, c := range map[string]struct {
		limit, namespaces int
		overloaded        bool
	}{
		"a wide watch for four namespaces":                    {2, 4, false},
		"as many namespaces as need one at the default limit": {DefaultMaxWatches, 600, false},
		"an API server that is overloaded":                    {DefaultMaxWatches, 600, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			lives(t, &outages{overloaded: c.overloaded}, c.limit, func(s *Store) { s.Claim(h, spread(c.namespaces), nil) },
				func(when string, s *Store) {
					size := s.Size()
					assert.Zero(t, size.Beyond+size.Refused, "%s: %+v", when, size)
				})
		})
	}
}

// Without any wide watch: the key with most objects keeps its watch through an outage.
func TestAnOutageTakesNoPlace(t *testing.T) {
	many, few := Owner{Name: "many"}, Owner{Name: "few"}
	there := manifest.ID{Resource: "secrets", Namespace: "ns", Name: "b"}
	lives(t, &outages{}, 1, func(s *Store) {
		s.Claim(many, claims("a", "b", "c"), nil)
		s.Claim(few, map[manifest.ID]Key{there: watchOf("secrets", "ns")}, nil)
	}, func(when string, s *Store) {
		assert.False(t, s.Unwatched(many, thing("a")), when)
	})
}

// An agent starts without the rights to list and watch. The log advises to grant them, and so it happens.
//
// Shows: work/watches-wide
func TestRightsThatAreGrantedLaterCoverAllNamespaces(t *testing.T) {
	for name, n := range map[string]int{"as many as there may be watches": DefaultMaxWatches, "more": 600} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := fake.NewTestScheme()
				require.NoError(t, metav1.AddMetaToScheme(scheme))
				client, server := fake.NewSimpleMetadataClient(scheme), &outages{denies: true}
				server.serve(client)
				store, w := NewWatcher(client, Bounds{DefaultMaxWatches, 12 * time.Hour}, func(Owner) {})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				defer func() { cancel(); <-done }()
				store.Claim(Owner{Name: "w"}, spread(n), nil)
				time.Sleep(10 * time.Minute)
				server.mu.Lock()
				server.denies = false
				server.mu.Unlock()
				time.Sleep(6 * time.Hour)
				synctest.Wait()
				size := store.Size()
				assert.Zero(t, size.Beyond+size.Refused, "%+v", size)
			})
		})
	}
}
