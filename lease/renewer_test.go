package lease

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server is an API server with one Lease at most: it guards updates by resourceVersion and fails on demand.
type server struct {
	mu      sync.Mutex
	stored  *coordinationv1.Lease
	version int
	fail    func() error
	gets    int
	creates int
	updates int
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// change changes the server while a renewer may be using it.
func (s *server) change(how func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

func (s *server) store(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.stored = l.DeepCopy()
	s.stored.ResourceVersion = string(rune('a' + s.version%26))
	return s.stored.DeepCopy()
}

func (s *server) failure() error {
	if s.fail == nil {
		return nil
	}
	return s.fail()
}

func (s *server) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.stored == nil {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return s.stored.DeepCopy(), nil
}

func (s *server) Create(
	_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creates++
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.stored != nil {
		return nil, apierrors.NewAlreadyExists(leases, l.Name)
	}
	return s.store(l), nil
}

func (s *server) Update(
	_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates++
	if err := s.failure(); err != nil {
		return nil, err
	}
	switch {
	case s.stored == nil:
		return nil, apierrors.NewNotFound(leases, l.Name)
	case s.stored.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(leases, l.Name, errors.New("somebody was faster"))
	}
	return s.store(l), nil
}

// running starts r in the background of a synctest bubble and stops it at the end of the test.
func running(t *testing.T, r *Renewer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	synctest.Wait()
}

// reports gathers what a renewer reports.
type reports struct {
	mu     sync.Mutex
	errors []error
}

func (r *reports) add(_ time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, err)
}

func (r *reports) all() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errors)
}

func (r *reports) last() error {
	all := r.all()
	return all[len(all)-1]
}

func pass(d time.Duration) {
	time.Sleep(d) // inside a synctest bubble: moves the fake clock, does not wait
	synctest.Wait()
}

func TestRenewerCostsOneRequestPerBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.store(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: ClusterLease}})
		r := &Renewer{Leases: s, Namespace: "c1", Name: ClusterLease, Duration: time.Minute}
		running(t, r)
		for range 10 {
			pass(r.period())
		}
		assert.Equal(t, 1, s.gets)
		assert.Equal(t, 11, s.updates)
		assert.Zero(t, s.creates)
		assert.WithinDuration(t, time.Now(), s.stored.Spec.RenewTime.Time, time.Second)
		assert.Nil(t, s.stored.Spec.HolderIdentity, "the holder of a heartbeat is the hub's")
		assert.Nil(t, s.stored.Spec.LeaseDurationSeconds)
	})
}

// Shows: registration/lease-renewer
func TestRenewerOfAnAddonCreatesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		running(t, &Renewer{Leases: s, Namespace: "ns", Name: "hello", Create: true})
		require.NotNil(t, s.stored)
		assert.Equal(t, "hello", *s.stored.Spec.HolderIdentity)
		assert.Equal(t, int32(60), *s.stored.Spec.LeaseDurationSeconds)
		assert.Equal(t, Fresh, Judge(s.stored, time.Now(), AddonGrace).State)
	})
}

func TestRenewerWaitsForALeaseThatTheHubCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		running(t, &Renewer{Leases: s, Namespace: "c1", Name: ClusterLease})
		assert.Zero(t, s.creates)
		s.change(func(s *server) {
			s.store(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: ClusterLease}})
		})
		pass(2 * time.Second)
		assert.Equal(t, Fresh, Judge(s.stored, time.Now(), ClusterGrace(0)).State)
	})
}

func TestRenewerSurvivesADeletedAndAForeignLease(t *testing.T) {
	tests := map[string]func(s *server){
		"the lease was deleted":                        func(s *server) { s.stored = nil },
		"somebody else wrote the lease":                func(s *server) { s.store(s.stored) },
		"the lease was deleted and created by another": func(s *server) { s.store(&coordinationv1.Lease{}) },
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				var reports reports
				r := &Renewer{Leases: s, Namespace: "ns", Name: "hello", Create: true, Report: reports.add}
				running(t, r)
				s.change(disturb)
				pass(r.period())
				require.NotNil(t, s.stored)
				require.NoError(t, errors.Join(reports.all()...), "the beat is repeated at once and nobody hears of it")
				assert.WithinDuration(t, time.Now(), s.stored.Spec.RenewTime.Time, time.Second)
			})
		})
	}
}

func TestRenewerRepeatsAFailedBeatWithinThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var reports reports
		r := &Renewer{Leases: s, Namespace: "ns", Name: "hello", Create: true, Report: reports.add}
		running(t, r)
		s.change(func(s *server) {
			s.fail = func() error { return apierrors.NewInternalError(errors.New("etcd has no leader")) }
		})
		pass(r.period())
		require.Len(t, reports.all(), 2)
		require.Error(t, reports.last())
		pass(r.period())
		assert.GreaterOrEqual(t, len(reports.all()), 6, "a failed beat is repeated within the period")
		assert.Less(t, len(reports.all()), 20, "and not without pauses")
		s.change(func(s *server) { s.fail = nil })
		pass(r.period() / 3)
		assert.WithinDuration(t, time.Now(), s.stored.Spec.RenewTime.Time, r.period()/3)
		require.NoError(t, reports.last())
	})
}

func TestRenewerSkipsTheBeatOfAnUnhealthyAddon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := errors.New("cannot reach the hub")
		s := &server{}
		var reports reports
		var healthy atomic.Bool
		r := &Renewer{
			Leases: s, Namespace: "ns", Name: "hello", Create: true,
			Healthy: []func(context.Context) error{func(context.Context) error {
				if healthy.Load() {
					return nil
				}
				return sick
			}},
			Report: reports.add,
		}
		running(t, r)
		require.ErrorIs(t, reports.last(), sick)
		assert.Zero(t, s.gets+s.creates+s.updates)
		healthy.Store(true)
		pass(r.period() / 3)
		require.NoError(t, reports.last())
		assert.Equal(t, 1, s.creates)
	})
}

func TestRenewerNeedsAClientAndAName(t *testing.T) {
	require.Error(t, (&Renewer{Name: "hello"}).Run(t.Context()))
	require.Error(t, (&Renewer{Leases: &server{}}).Run(t.Context()))
}

func TestPeriodsOfAFleetAreSpreadAndStable(t *testing.T) {
	quarters := map[int]int{}
	for _, cluster := range []string{
		"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15", "c16", "c17", "c18",
	} {
		r := &Renewer{Namespace: cluster, Name: ClusterLease, Duration: time.Minute}
		p := r.period()
		require.Equal(t, p, r.period())
		require.GreaterOrEqual(t, p, time.Minute)
		require.Less(t, p, 75*time.Second)
		quarters[int((p-time.Minute)/(15*time.Second/4))]++
	}
	assert.Len(t, quarters, 4, "18 clusters share no quarter of the band alone: %v", quarters)
	largest := &Renewer{Duration: math.MaxInt64, Namespace: "c", Name: "l"}
	assert.Positive(t, largest.period())
}
