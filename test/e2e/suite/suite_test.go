package suite

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passing returns a scenario that passes.
func passing(name string, needs ...string) Scenario {
	return Scenario{Name: name, Needs: needs, Run: func(context.Context, *Session) error { return nil }}
}

func namesOf(scenarios []Scenario) []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.Name)
	}
	return all
}

func TestSelectedScenariosComeWithThoseThatTheyNeed(t *testing.T) {
	s := &Suite{Scenarios: []Scenario{passing("install"), passing("join", "install"), passing("memory", "join"),
		passing("upgrade", "join")}}
	assert.Equal(t, []string{"install", "join", "memory"}, namesOf(s.Select([]string{"memory"})))
	assert.Equal(t, []string{"install"}, namesOf(s.Select([]string{"stall"})))
	assert.Empty(t, s.Select([]string{"nothing"}))
	assert.Len(t, s.Select(nil), 4)
}

func TestASuiteThatIsNotWellFormedIsRefused(t *testing.T) {
	s := &Suite{Name: "s", Scenarios: []Scenario{passing("a", "b"), passing("b"), passing("b")}}
	require.EqualError(t, s.Check(), "suite s: a needs b, which does not come before it\nsuite s has two scenarios b")
}

func TestWhatBecomesOfScenarios(t *testing.T) {
	var order []string
	step := func(name string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			order = append(order, name)
			return errors.Join(ctx.Err(), err)
		}
	}
	scenarios := []Scenario{
		{Name: "fails", Timeout: time.Millisecond, Run: func(ctx context.Context, s *Session) error {
			s.Cleanup("do the second", step("second", nil))
			s.Cleanup("do the first", step("first", nil))
			<-ctx.Done()
			return context.Cause(ctx)
		}},
		passing("needs", "fails"),
		{Name: "leaves", Run: func(_ context.Context, s *Session) error {
			s.Note("%d", 1)
			s.Cleanup("clean", step("clean", errors.New("it is stuck")))
			return nil
		}},
		passing("last"),
	}
	results := playAll(t.Context(), "s", scenarios, &Fleet{}, io.Discard)
	require.Len(t, results, 4)
	require.EqualError(t, results[0].Err, "gave up after 1ms")
	assert.Equal(t, "fails did not pass", results[1].Skipped)
	require.EqualError(t, results[2].Err, "could not clean: it is stuck")
	assert.Equal(t, []string{"1"}, results[2].Notes)
	assert.True(t, results[3].passed())
	assert.Equal(t, []string{"first", "second", "clean"}, order)
	assert.True(t, failed(results))
	require.EqualError(t, Summarize(io.Discard, results), "3 of 4 scenarios did not pass")

	report := junit(results)
	require.Len(t, report.Suites, 1)
	assert.Equal(t, 4, report.Suites[0].Tests)
	assert.Equal(t, 2, report.Suites[0].Failures)
	assert.Equal(t, 1, report.Suites[0].Skipped)
	assert.Equal(t, "gave up after 1ms", report.Suites[0].Cases[0].Failure.Message)
}
