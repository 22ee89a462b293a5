package alerts_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/manifests/monitoring"
	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// patience is how long the fleet may take to notice a fault, in real time.
	patience = 90 * time.Second
	// rules are those that ship.
	rules = "../../../manifests/monitoring/rules.yaml"
	// calm is how long the healthy fleet is looked at, on the clock of the monitor; longest is how long alerts may take to
	// be silent again, which is the longest window of an expression and its for.
	calm, longest = 20 * time.Minute, 80 * time.Minute
)

// fault is what is done to the fleet.
type fault struct {
	// name is a sentence for the table.
	name string
	// alerts have to fire.
	alerts []string
	// also may be pending or fire, because they are true, too.
	also []string
	// inject does it, and returns when the programs noticed.
	inject func(w *world)
	// during is done before each scrape, while the fault lasts. Optional.
	during func(w *world)
	// heal ends it, and returns when the fleet is well.
	heal func(w *world)
}

// fired is a row of the table.
type fired struct {
	fault, alert           string
	pending, firing, quiet time.Duration
}

// world is a monitored fleet.
type world struct {
	*testing.T

	fleet   *harness.Fleet
	monitor *harness.Monitor
	pods    *pods
	rows    []fired
}

// eventually waits in real time until holds returns nil.
func (w *world) eventually(what string, holds func(ctx context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeoutCause(w.Context(), patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	require.NoError(w, fleet.Wait(ctx, what, nil, holds))
}

// metric waits until the sum of a metric is as it should be.
func (w *world) metric(selector string, holds func(float64) bool) {
	w.Helper()
	w.eventually("metric "+selector, func(ctx context.Context) error {
		value, err := w.fleet.Value(ctx, selector)
		if err == nil && !holds(value) {
			return fleet.NotYet("it is %v", value)
		}
		return err
	})
}

func positive(value float64) bool { return value > 0 }
func zero(value float64) bool     { return value == 0 }

// silent steps for a while, in which no alert is pending or fires.
func (w *world) silent(when string, lasts time.Duration) {
	w.Helper()
	for end := w.monitor.Now().Add(lasts); w.monitor.Now().Before(end); {
		require.NoError(w, w.monitor.Step(w.Context()))
		require.Empty(w, w.monitor.Alerts(), "on the healthy fleet, %s", when)
	}
}

// play does a fault to a healthy fleet, sees its alerts fire, and ends it.
func (w *world) play(f fault) {
	w.Helper()
	w.silent("before "+f.name, 2*harness.ScrapeEvery)
	watch := clock.RealClock{}
	started := watch.Now()
	f.inject(w)
	noticed := watch.Since(started)
	begin := w.monitor.Now()
	rows := map[string]*fired{}
	for _, name := range f.alerts {
		rows[name] = &fired{fault: f.name, alert: name, pending: -1, firing: -1}
	}
	for slices.ContainsFunc(f.alerts, func(name string) bool { return rows[name].firing < 0 }) {
		require.Less(w, w.monitor.Now().Sub(begin), waits(f.alerts)+10*time.Minute, "%s: not all fire: %v", f.name, w.monitor.Alerts())
		if f.during != nil {
			f.during(w)
		}
		require.NoError(w, w.monitor.Step(w.Context()))
		w.note(f, rows, w.monitor.Now().Sub(begin))
	}
	started = watch.Now()
	f.heal(w)
	w.Logf("%s: noticed after %s, well after %s", f.name, noticed.Round(time.Millisecond), watch.Since(started).Round(time.Millisecond))
	healed := w.monitor.Now()
	for len(w.monitor.Alerts()) > 0 {
		require.Less(w, w.monitor.Now().Sub(healed), longest, "%s: it is over, and these are not silent: %v", f.name,
			w.monitor.Alerts())
		require.NoError(w, w.monitor.Step(w.Context()))
	}
	for _, name := range f.alerts {
		rows[name].quiet = w.monitor.Now().Sub(healed)
		w.rows = append(w.rows, *rows[name])
	}
}

// note notes which alerts are pending or fire, and fails for one that should not.
func (w *world) note(f fault, rows map[string]*fired, after time.Duration) {
	w.Helper()
	for _, alert := range w.monitor.Alerts() {
		row := rows[alert.Name]
		if row == nil {
			require.Contains(w, f.also, alert.Name, "%s: an alert about something else: %v", f.name, alert)
			continue
		}
		if row.pending < 0 {
			row.pending = after
		}
		if alert.State == harness.Firing && row.firing < 0 {
			row.firing = after
			for _, text := range alert.Annotations {
				require.NotContains(w, text, "<no value>")
				require.NotContains(w, text, "{{")
			}
			w.Logf("%s: %s", alert.Name, alert.Annotations["summary"])
		}
	}
}

// waits returns how long the last of some alerts waits before it fires.
func waits(alerts []string) time.Duration {
	longest := time.Duration(0)
	for _, a := range monitoring.Alerts() {
		if slices.Contains(alerts, a.Name) {
			longest = max(longest, a.For)
		}
	}
	return longest
}

// TestEachAlertFiresForItsFaultAndIsSilentOnAHealthyFleet plays all faults, one after the other, on one fleet.
func TestEachAlertFiresForItsFaultAndIsSilentOnAHealthyFleet(t *testing.T) {
	w := newWorld(t)
	w.silent("at the beginning", calm)
	for _, f := range slices.Concat(agentFaults(), hubFaults()) {
		w.play(f)
	}
	w.silent("at the end", calm)
	for metric := range others() {
		found, err := w.fleet.Value(t.Context(), metric)
		require.NoError(t, err, "%s: %v", metric, found)
	}
	seen := map[string]bool{}
	for _, row := range w.rows {
		seen[row.alert] = true
	}
	for _, a := range monitoring.Alerts() {
		require.True(t, seen[a.Name], "no fault makes %s fire", a.Name)
	}
	compare(t, table(w.rows))
}

// table prints the rows for the page.
func table(rows []fired) string {
	var text strings.Builder
	text.WriteString("\n| fault | alert | pending after | fires after | silent before and after it |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | [%s](runbooks/%[2]s.md) | %s | %s | yes |\n", row.fault, row.alert, short(row.pending),
			short(row.firing))
	}
	text.WriteString("\n")
	return text.String()
}

// short prints a duration without zeros.
func short(d time.Duration) string {
	text := d.String()
	for _, suffix := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, suffix) {
			text = text[:len(text)-2]
		}
	}
	return text
}
