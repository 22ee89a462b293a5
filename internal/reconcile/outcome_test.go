package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	now     = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	works   = schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "manifestworks"}
	errRace = apierrors.NewConflict(works, "w", errors.New("newer"))
	errDown = errors.New("down")
)

func TestFromErrorSortsErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Class
	}{
		"no error is done":                         {nil, ClassDone},
		"a conflict is a lost race":                {errRace, ClassLostRace},
		"an object that came meanwhile, too":       {apierrors.NewAlreadyExists(works, "w"), ClassLostRace},
		"a wrapped conflict, too":                  {fmt.Errorf("patching: %w", errRace), ClassLostRace},
		"several conflicts, too":                   {errors.Join(errRace, fmt.Errorf("b: %w", errRace)), ClassLostRace},
		"a wrapped join of conflicts, too":         {fmt.Errorf("all: %w", errors.Join(errRace, errRace)), ClassLostRace},
		"a conflict beside another error is tried": {errors.Join(errRace, errDown), ClassRetry},
		"the same the other way round":             {errors.Join(errDown, errRace), ClassRetry},
		"a missing object is tried again":          {apierrors.NewNotFound(works, "w"), ClassRetry},
		"a forbidden call is tried again":          {apierrors.NewForbidden(works, "w", errDown), ClassRetry},
		"anything else is tried again":             {errDown, ClassRetry},
	} {
		t.Run(name, func(t *testing.T) {
			o := FromError(tc.err)
			assert.Equal(t, tc.want, o.Class())
			assert.Equal(t, tc.err, o.Err())
			assert.True(t, o.Wake().IsZero())
		})
	}
}

func TestRetryOfNothingIsDone(t *testing.T) {
	assert.Equal(t, Done(), Retry(nil))
	assert.Equal(t, Outcome{}, Done())
	assert.Equal(t, Done(), DoneUntil(time.Time{}))
}

func TestRetryBy(t *testing.T) {
	later := now.Add(time.Second)
	assert.Equal(t, Done(), RetryBy(t.Context(), nil, later), "no error is done")
	assert.Equal(t, FromError(errRace), RetryBy(t.Context(), errRace, later), "a lost race is repeated sooner than that")
	assert.Equal(t, FromError(errDown), RetryBy(t.Context(), errDown, time.Time{}), "without an instant the queue backs off")
	assert.Equal(t, Waiting(later), RetryBy(t.Context(), errDown, later))
}

func TestSettle(t *testing.T) {
	later, earlier := now.Add(time.Minute), now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		outcome  Outcome
		after    time.Duration
		err      error
		terminal bool
	}{
		"done":                         {outcome: Done()},
		"done until later":             {outcome: DoneUntil(later), after: time.Minute},
		"done until an instant gone":   {outcome: DoneUntil(earlier), after: time.Millisecond},
		"done until this instant":      {outcome: DoneUntil(now), after: time.Millisecond},
		"waiting for an event":         {outcome: Waiting(time.Time{})},
		"waiting until later":          {outcome: Waiting(later), after: time.Minute},
		"a retry backs off":            {outcome: Retry(errDown), err: errDown},
		"stalled ends":                 {outcome: Stalled(errDown), err: errDown, terminal: true},
		"stalled, but waiting as well": {outcome: Stalled(errDown).And(Waiting(later)), after: time.Minute},
		"a retry forgets its instant":  {outcome: Retry(errDown).And(Waiting(later)), err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := tc.outcome.Settle(now)
			assert.Equal(t, ctrl.Result{RequeueAfter: tc.after}, result)
			assert.Equal(t, tc.terminal, errors.Is(err, reconcile.TerminalError(nil)))
			if tc.err == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tc.err)
		})
	}
	lost, err := FromError(errRace).And(DoneUntil(later)).Settle(now)
	require.NoError(t, err, "a lost race is quiet")
	assert.Equal(t, ctrl.Result{Requeue: true}, lost, "and the queue chooses the pause")
	_, err = Outcome{class: 99}.Settle(now)
	require.ErrorContains(t, err, "unknown outcome class 99")
}

func TestAnd(t *testing.T) {
	all := map[string]Outcome{
		"done": Done(), "done until": DoneUntil(now.Add(time.Hour)), "waiting": Waiting(now.Add(time.Minute)),
		"lost race": FromError(errRace), "stalled": Stalled(errors.New("person")), "retry": Retry(errDown),
	}
	for left, a := range all {
		for right, b := range all {
			t.Run(left+" and "+right, func(t *testing.T) {
				ab, ba := a.And(b), b.And(a)
				assert.Equal(t, max(a.Class(), b.Class()), ab.Class(), "the worse one wins")
				assert.Equal(t, ab.Class(), ba.Class())
				assert.Equal(t, Earliest(a.Wake(), b.Wake()), ab.Wake())
				assert.Equal(t, ab.Wake(), ba.Wake())
				for _, part := range []error{a.Err(), b.Err()} {
					if part != nil {
						require.ErrorIs(t, ab.Err(), part, "no error is dropped")
					}
				}
				assert.Equal(t, a.Err() == nil && b.Err() == nil, ab.Err() == nil)
			})
		}
		assert.Equal(t, a, a.And(Done()), "done adds nothing to %s", left)
		assert.Equal(t, a, Done().And(a), "done adds nothing to %s", left)
	}
}

func TestClassesAreOrderedByHowBadTheyAre(t *testing.T) {
	assert.IsIncreasing(t, []int{
		int(ClassDone), int(ClassWaiting), int(ClassLostRace), int(ClassStalled), int(ClassRetry)})
}

func TestEarliest(t *testing.T) {
	zero, a, b := time.Time{}, now, now.Add(time.Second)
	assert.Equal(t, zero, Earliest())
	assert.Equal(t, zero, Earliest(zero, zero))
	assert.Equal(t, a, Earliest(zero, b, a, zero))
	assert.Equal(t, b, Earliest(b))
}

// added has what was put into a queue for later.
type added []time.Duration

func (a *added) AddAfter(_ ctrl.Request, after time.Duration) { *a = append(*a, after) }

func TestAFailedPassKeepsItsInstantBesidesTheBackOff(t *testing.T) {
	failed := Retry(errDown)
	for name, tc := range map[string]struct {
		outcome Outcome
		want    added
	}{
		"an instant to come":           {failed.And(DoneUntil(now.Add(250 * time.Millisecond))), added{250 * time.Millisecond}},
		"an instant that has come":     {failed.And(DoneUntil(now.Add(-time.Hour))), added{time.Millisecond}},
		"no instant":                   {failed, nil},
		"a pass that is fine":          {DoneUntil(now.Add(time.Second)), nil},
		"a lost race comes soon again": {FromError(errRace).And(DoneUntil(now.Add(time.Second))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var queue added
			result, err := tc.outcome.SettleIn(&queue, ctrl.Request{}, now)
			assert.Equal(t, tc.want, queue)
			alone, settled := tc.outcome.Settle(now)
			assert.Equal(t, alone, result)
			assert.Equal(t, settled, err, "the queue backs off all the same")
		})
	}
}

// undecodable is an error about an object that cannot be decoded.
type undecodable struct{ error }

func (undecodable) Undecodable() bool { return true }

func TestAnObjectThatCannotBeDecodedIsLookedAtAgainWithoutAnError(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	result, err := Retry(fmt.Errorf("reading it: %w", undecodable{errors.New("x")})).Settle(now)
	require.NoError(t, err, "it was logged once")
	assert.Equal(t, lastBackoff, result.RequeueAfter)
}
