package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	patience = 10 * time.Second
	tick     = time.Millisecond
)

var (
	epoch     = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	resource  = schema.GroupResource{Resource: "configmaps"}
	forbidden = apierrors.NewForbidden(resource, "", errors.New("no"))
)

// server is an API server of ConfigMaps that cannot stream lists.
type server struct {
	mu       sync.Mutex
	lists    int
	listErr  error
	watchErr error
	version  string
	objects  []corev1.ConfigMap
	events   *watch.RaceFreeFakeWatcher
	// poison is the error in the events of each watch at a version.
	poison  map[string]*apierrors.StatusError
	options []metav1.ListOptions
}

// IsWatchListSemanticsUnSupported tells the reflector to list before it watches.
func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) list(_ context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	s.options = append(s.options, options)
	if s.listErr != nil {
		return nil, s.listErr
	}
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}, Items: s.objects}, nil
}

func (s *server) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options = append(s.options, options)
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	s.events = watch.NewRaceFreeFake()
	if bad := s.poison[options.ResourceVersion]; bad != nil {
		status := bad.Status()
		s.events.Error(&status)
	}
	return s.events, nil
}

// set changes the server.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// open returns the stream of events that is open, nil when there is none.
func (s *server) open() *watch.RaceFreeFakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil || s.events.IsStopped() {
		return nil
	}
	return s.events
}

func (s *server) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// record is a Handler that writes down what it receives.
type record struct {
	mu    sync.Mutex
	lines []string
	panic bool
}

func (r *record) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *record) Replace(_ context.Context, objects []*corev1.ConfigMap, version string) {
	line := "replace at " + version + ":"
	for _, object := range objects {
		line += " " + object.Name + fmt.Sprint(len(object.ManagedFields), len(object.Data))
	}
	r.add(line)
}

func (r *record) Update(_ context.Context, object *corev1.ConfigMap) {
	r.add("update " + object.Name)
	r.mu.Lock()
	fail := r.panic
	r.panic = false
	r.mu.Unlock()
	if fail {
		panic("a defect")
	}
}

func (r *record) Delete(_ context.Context, object *corev1.ConfigMap) { r.add("delete " + object.Name) }

func (r *record) read() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// running is a Watch that runs on a server with a clock that the test moves.
type running struct {
	*server
	*record
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	ends  []error
	logs  []string
}

// start runs a Watch until the test ends; change may change it before.
func start(t *testing.T, api *server, change ...func(*Watch[*corev1.ConfigMap])) *running {
	t.Helper()
	r := &running{server: api, record: &record{}, clock: clocktesting.NewFakeClock(epoch)}
	w := &Watch[*corev1.ConfigMap]{
		Name: "test", Description: "configmaps", Source: From(api, api.list, api.watch), Handler: r.record, Clock: r.clock,
		Ended: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ends = append(r.ends, err)
		},
	}
	for _, one := range change {
		one(w)
	}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(_, line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logs = append(r.logs, line)
	}, funcr.Options{})))
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *running) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ends)
}

func (r *running) logged() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.logs...)
}

// steps lets time pass until a condition holds, a step whenever the watch waits for the clock. While it works the clock
// stands, so that what is said of the time that passed holds however slow the machine is.
func (r *running) steps(t *testing.T, step time.Duration, until func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		if until() {
			return true
		}
		if r.clock.HasWaiters() {
			r.clock.Step(step)
		}
		return false
	}, patience, tick)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "11", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		},
		Data: map[string]string{"k": "v"},
	}
}

func TestAWatchHandsOverAListAndThenEvents(t *testing.T) {
	r := start(t, &server{version: "10", objects: []corev1.ConfigMap{*configMap("a")}})
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	r.open().Add(configMap("b"))
	r.open().Modify(configMap("a"))
	r.open().Delete(configMap("b"))
	want := []string{"replace at 10: a0 1", "update b", "update a", "delete b"}
	require.Eventually(t, func() bool { return len(r.read()) == len(want) }, patience, tick)
	assert.Equal(t, want, r.read())
	assert.Zero(t, r.ended())
}

// An API server that lags may answer a list of any state with one of before, in which what is gone lives.
//
// Shows: work/first-list
func TestAWatchBeginsWithThePresentState(t *testing.T) {
	r := start(t, &server{version: "10"})
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	r.set(func(s *server) { s.watchErr = apierrors.NewInternalError(errors.New("cut off")) })
	r.open().Stop()
	r.steps(t, time.Second, func() bool { return r.listed() >= 3 })
	r.set(func(s *server) {
		assert.Empty(t, s.options[0].ResourceVersion)
		for _, later := range s.options[1:] {
			if !IsForVersion(later) {
				assert.Equal(t, "10", later.ResourceVersion, "no state before that which was seen")
			}
		}
	})
}

func TestAWatchTrimsAndSelects(t *testing.T) {
	r := start(t, &server{version: "10", objects: []corev1.ConfigMap{*configMap("a")}}, func(w *Watch[*corev1.ConfigMap]) {
		w.Trim = func(c *corev1.ConfigMap) { c.Data = nil }
		w.Source.LabelSelector, w.Source.FieldSelector, w.Source.PageSize = "l=1", "metadata.name=a", 7
	})
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	assert.Equal(t, []string{"replace at 10: a0 0"}, r.read())
	r.set(func(s *server) {
		require.Len(t, s.options, 2)
		assert.EqualValues(t, 7, s.options[0].Limit)
		for _, options := range s.options {
			assert.Equal(t, "l=1", options.LabelSelector)
			assert.Equal(t, "metadata.name=a", options.FieldSelector)
		}
	})
}

func TestAWatchThatFailsStartsAgainAfterAPause(t *testing.T) {
	away := errors.New("away")
	r := start(t, &server{listErr: away})
	for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		require.Eventually(t, func() bool { return r.ended() == n+1 && r.clock.HasWaiters() }, patience, tick)
		r.clock.Step(pause - time.Millisecond)
		assert.Equal(t, n+1, r.listed(), "nothing is sent during a pause")
		if n == 2 {
			r.set(func(s *server) { s.listErr, s.version = nil, "10" })
		}
		r.clock.Step(time.Millisecond)
	}
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	assert.Equal(t, []string{"replace at 10:"}, r.read())
	for _, err := range r.ends {
		require.ErrorIs(t, err, away)
	}
	assert.Empty(t, r.logged(), "a failure that goes away by itself is no message")
}

func TestAWatchThatIsRefusedGivesAdviceOnce(t *testing.T) {
	r := start(t, &server{listErr: forbidden}, func(w *Watch[*corev1.ConfigMap]) {
		w.Refused, w.Advice = Refused, "grant list and watch"
	})
	for n := range 3 {
		require.Eventually(t, func() bool { return r.ended() == n+1 && r.clock.HasWaiters() }, patience, tick)
		r.clock.Step(refusedPause)
	}
	require.Eventually(t, func() bool { return r.ended() == 4 }, patience, tick)
	require.Len(t, r.logged(), 1)
	assert.Contains(t, r.logged()[0], "grant list and watch")
}

// Shows: work/watches-fail
func TestAWatchThatKeepsFailingSaysSoOnce(t *testing.T) {
	broken := apierrors.NewInternalError(errors.New("the conversion webhook is away"))
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"one object cannot be converted":       {broken, 1},
		"a proxy cuts lists":                   {errors.New("unexpected EOF"), 1},
		"nobody reaches the API server at all": {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var silent []error
			r := start(t, &server{listErr: c.err}, func(w *Watch[*corev1.ConfigMap]) {
				w.Silent = func(err error) {
					mu.Lock()
					defer mu.Unlock()
					silent = append(silent, err)
				}
			})
			told := func() []error {
				mu.Lock()
				defer mu.Unlock()
				return append([]error(nil), silent...)
			}
			ends := 0
			fail := func(times int) {
				for range times {
					ends++
					require.Eventually(t, func() bool { return r.ended() == ends && r.clock.HasWaiters() }, patience, tick)
					r.clock.Step(lastPause)
				}
			}
			fail(1)
			assert.Empty(t, told(), "most failures go away by themselves")
			assert.Empty(t, r.logged())
			fail(3)
			require.Len(t, told(), c.want)
			require.Len(t, r.logged(), c.want)
			if c.want == 0 {
				return
			}
			assert.Contains(t, r.logged()[0], c.err.Error())
			r.set(func(s *server) { s.listErr, s.version, s.watchErr = nil, "10", c.err })
			fail(4)
			assert.Len(t, told(), 1, "lists show what changes")
			r.set(func(s *server) { s.listErr = c.err })
			fail(3)
			assert.Len(t, told(), 2)
		})
	}
}

func TestAWatchListsAgainAfterRelist(t *testing.T) {
	r := start(t, &server{version: "10"}, func(w *Watch[*corev1.ConfigMap]) { w.Relist = time.Hour })
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	r.clock.Step(time.Hour - time.Second)
	assert.Equal(t, 1, r.listed())
	r.clock.Step(time.Second)
	require.Eventually(t, func() bool { return r.ended() == 1 }, patience, tick)
	require.NoError(t, r.ends[0], "the caller did it, not the API server")
	require.Eventually(t, func() bool { r.clock.Step(endedPause); return r.listed() == 2 }, patience, tick)
}

func TestAPanicOfAHandlerIsAFailureOfTheWatch(t *testing.T) {
	r := start(t, &server{version: "10"}, func(*Watch[*corev1.ConfigMap]) {})
	require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
	r.record.mu.Lock()
	r.panic = true
	r.record.mu.Unlock()
	r.open().Add(configMap("a"))
	require.Eventually(t, func() bool { return r.ended() == 1 }, patience, tick)
	require.ErrorContains(t, r.ends[0], "a defect")
	require.Len(t, r.logged(), 1)
	assert.Contains(t, r.logged()[0], "panic: a defect")
	require.Eventually(t, func() bool { r.clock.Step(firstPause); return r.listed() >= 2 }, patience, tick, "it goes on")
}

func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                       {nil, false},
		"an API server that is away":     {errors.New("connection refused"), false},
		"an API server with much to do":  {apierrors.NewTooManyRequestsError("later"), false},
		"a request that is not allowed":  {forbidden, true},
		"a credential that is not known": {apierrors.NewUnauthorized("expired"), true},
		"a kind that is not served":      {apierrors.NewNotFound(resource, ""), true},
		"a kind that cannot be watched":  {apierrors.NewMethodNotSupported(resource, "watch"), true},
		"an answer that is wrapped":      {fmt.Errorf("listing: %w", forbidden), true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Refused(c.err)) })
	}
}

func TestPauses(t *testing.T) {
	failed := func(progressed, refused bool) ending {
		return ending{err: forbidden, progressed: progressed, refused: refused, lasted: steady}
	}
	repeat := func(end ending, times int) []ending {
		var all []ending
		for range times {
			all = append(all, end)
		}
		return all
	}
	for name, c := range map[string]struct {
		ends []ending
		want time.Duration
	}{
		"the first failure":                        {repeat(failed(false, false), 1), firstPause},
		"the second failure":                       {repeat(failed(false, false), 2), 2 * firstPause},
		"the fifth failure":                        {repeat(failed(false, false), 5), 16 * firstPause},
		"an outage":                                {repeat(failed(false, false), 60), lastPause},
		"a refusal":                                {repeat(failed(false, true), 60), refusedPause},
		"a failure after a long refusal":           {append(repeat(failed(false, true), 60), failed(false, false)), lastPause},
		"a failure of a watch that worked":         {append(repeat(failed(false, false), 60), failed(true, false)), firstPause},
		"lists that work before watches that fail": {repeat(ending{err: forbidden, progressed: true}, 60), lastPause},
		"a normal end":                             {repeat(ending{lasted: time.Hour}, 1), endedPause},
		"normal ends of watches that last":         {repeat(ending{lasted: steady}, 60), endedPause},
		"a second end that comes too early":        {repeat(ending{lasted: steady - 1}, 2), 2 * endedPause},
		"ends that keep coming early":              {repeat(ending{}, 60), lastPause},
		"a normal end after an outage":             {append(repeat(failed(false, false), 60), ending{}), endedPause},
		"a failure after ends that came early":     {append(repeat(ending{}, 60), failed(false, false)), firstPause},
		"a failure of a watch that took its time":  {repeat(ending{err: forbidden, lasted: time.Hour}, 2), 2 * firstPause},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			var got time.Duration
			for _, end := range c.ends {
				got = b.next(end)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestOnlyObjectsOfTheTypeAreTaken(t *testing.T) {
	r := &record{}
	s := (&Watch[*corev1.ConfigMap]{Description: "configmaps", Handler: r}).store(t.Context())
	require.EqualError(t, s.Add("text"), "watching configmaps: got a string")
	require.Error(t, s.Update(&corev1.Secret{}))
	require.Error(t, s.Delete(7))
	require.Error(t, s.Replace([]any{configMap("a"), 7}, "1"))
	require.NoError(t, s.Resync())
	assert.Empty(t, r.read())
	trimmed, err := s.Transformer()(configMap("a"))
	require.NoError(t, err)
	object, ok := trimmed.(*corev1.ConfigMap)
	require.True(t, ok)
	assert.Empty(t, object.ManagedFields)
}
