package dashboards

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/monitoring/scene"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// A fleet plays until it has trouble of each kind. Before, each panel that shows how things are now has an answer, which is
// zero where it counts trouble. Then each query of each panel has one.
func TestEachQueryHasAnAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	s, m, store := started(t)
	require.NoError(t, m.Run(ctx, 2*time.Minute))
	t.Run("healthy", func(t *testing.T) {
		shown := answered(t, store, func(p dashboard.Panel) bool { return p.Type != "timeseries" })
		for title := range trouble() {
			assert.Contains(t, shown, title)
		}
		assert.Zero(t, shown["spokelet-fleet: Clusters in trouble"])
		assert.Zero(t, shown["spokelet-cluster: Deletions blocked"])
	})
	require.NoError(t, play(ctx, s, m))
	require.NoError(t, settled(ctx, m, store))
	t.Run("in trouble", func(t *testing.T) {
		shown := answered(t, store, func(dashboard.Panel) bool { return true })
		for title, least := range trouble() {
			assert.GreaterOrEqual(t, shown[title], least, title)
		}
	})
}

// answered asks the queries of panels, requires that all have an answer, and returns what the stats show.
func answered(t *testing.T, store *harness.Store, of func(dashboard.Panel) bool) map[string]float64 {
	t.Helper()
	first, last := store.Times()
	all := Asker{Store: store, Span: Span{From: first, To: last, Step: harness.ScrapeEvery}}
	shown := map[string]float64{}
	for _, d := range shipped(t) {
		a, err := all.Choose(t.Context(), d, nil)
		require.NoError(t, err)
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				values, err := a.Variable(t.Context(), v)
				require.NoError(t, err)
				assert.NotEmpty(t, values, "%s: variable %s", d.UID, v.Name)
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if !of(p) {
					continue
				}
				series, err := a.Target(t.Context(), target)
				require.NoError(t, err, "%s: panel %s, query %s", d.UID, p.Title, target.RefID)
				if assert.NotEmpty(t, series, "%s: panel %s, query %s", d.UID, p.Title, a.Expand(target.Expr)) && p.Type == "stat" {
					shown[d.UID+": "+p.Title], _ = series[0].Last()
				}
			}
		}
	}
	return shown
}

// trouble is what the fleet of the scene has at least, by panel.
func trouble() map[string]float64 {
	return map[string]float64{
		"spokelet-fleet: Clusters":                                 10,
		"spokelet-fleet: Clusters in trouble":                      2, // One is silent, and one waits to be accepted.
		"spokelet-fleet: Rollouts stopped":                         1,
		"spokelet-fleet: First certificate ends in":                3600,
		"spokelet-fleet: Agents without the hub":                   1,
		"spokelet-addon: Failed":                                   1,
		"spokelet-addon: Waiting":                                  1,
		"spokelet-addon: Stopped":                                  1,
		"spokelet-cluster: Outage for":                             1,
		"spokelet-cluster: Works":                                  3,
		"spokelet-cluster: Deletions blocked":                      1,
		"spokelet-cluster: Without their work":                     1,
		"spokelet-hub-manager: Leaders":                            1,
		"spokelet-hub-manager: Certificate of the webhook ends in": 3600,
	}
}

// started starts a fleet, and what looks at it.
func started(t *testing.T) (*scene.Scene, *harness.Monitor, *harness.Store) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	binaries := t.TempDir()
	require.NoError(t, harness.Build(t.Context(), binaries))
	s, err := scene.Start(t.Context(), scene.Options{
		Binaries: binaries, Played: 8, Takes: time.Second, Wave: 2, Deadline: 5 * time.Second, Log: os.Stderr,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	store, err := harness.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	m, err := harness.NewMonitor(t.Context(), store, clock.RealClock{}, s.Targets)
	require.NoError(t, err)
	return s, m, store
}

// play makes trouble of each kind.
func play(ctx context.Context, s *scene.Scene, m *harness.Monitor) error {
	s.Fail("shop-003", "logs:v2")
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.Write(ctx, "one") },
		func(ctx context.Context) error { return s.Roll(ctx, "v2") },
		s.Join, s.Knock, s.Visit, s.Block, s.Lose, s.Refuse, s.Drift, s.Stopped,
		func(ctx context.Context) error { s.CutSecond(); return s.Silent(ctx) },
		func(ctx context.Context) error { return s.Write(ctx, "two") },
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := m.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settled scrapes until all trouble is seen that takes its time to be seen, and then for some minutes.
func settled(ctx context.Context, m *harness.Monitor, store *harness.Store) error {
	for _, query := range []string{
		`spokelet_agent_connected{to="hub"} == 0`, `spokelet_work_deletion_blocked > 0`, `sum(spokelet_work_unowned) > 0`,
		`spokelet_csr_refused_total > 0`, `spokelet_fleet_rollouts_stopped > 0`, `spokelet_work_repairs_total > 0`,
		`spokelet_work_applies_total{result="failed"} > 0`, `spokelet_template_renders_total{result="failed"} > 0`,
	} {
		if err := await(ctx, m, store, query); err != nil {
			return err
		}
	}
	return m.Run(ctx, 3*time.Minute)
}

// await scrapes each second until a query has an answer.
func await(ctx context.Context, m *harness.Monitor, store *harness.Store, query string) error {
	for {
		if err := m.Step(ctx); err != nil {
			return err
		}
		found, err := store.Instant(ctx, query, m.Now())
		if err != nil || len(found) > 0 {
			return err
		}
		if !fleet.Pause(ctx, time.Second) {
			return fmt.Errorf("waiting for %s: %w", query, context.Cause(ctx))
		}
	}
}

func TestVariablesBecomeValues(t *testing.T) {
	a := Asker{Span: Span{Step: time.Minute}, Chosen: Values{"job": "spokelet-hub"}}
	assert.Equal(t, `sum(rate(a{job=~"spokelet-hub",addon=~".*"}[2m0s]))`,
		a.Expand(`sum(rate(a{job=~"$job",addon=~"${addon}"}[$__rate_interval]))`))
	a.Span.Step = 10 * time.Minute
	assert.Equal(t, `[10m30s]`, a.Expand(`[$__rate_interval]`))
}

func TestWhatLabelAVariableHas(t *testing.T) {
	selector, label, err := LabelOf(dashboard.Variable{Query: `label_values(up{a=~"$b", c="d"}, job)`})
	require.NoError(t, err)
	assert.Equal(t, `up{a=~"$b", c="d"}`, selector)
	assert.Equal(t, "job", label)
	for _, query := range []string{"up", "label_values(job)", "label_values(up{, job)", "label_values(up, job"} {
		_, _, err := LabelOf(dashboard.Variable{Query: query})
		assert.Error(t, err, query)
	}
}
