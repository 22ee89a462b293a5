package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"k8s.io/utils/clock"
)

// ScrapeEvery is how far apart scrapes are on the clock of a monitor, and evaluations of rules.
const ScrapeEvery = 30 * time.Second

// State is that of an alert: inactive, pending or firing.
type State = rules.AlertState

// The states of alerts.
const (
	Inactive = rules.StateInactive
	Pending  = rules.StatePending
	Firing   = rules.StateFiring
)

// Monitor scrapes programs and evaluates rules at instants of its own clock.
type Monitor struct {
	store   *Store
	scraper scraper
	targets func() []Target
	groups  []*rules.Group
	now     time.Time
}

// NewMonitor returns a monitor that keeps samples in a store, and evaluates the rules of files. Its clock begins at the
// time of the machine, or after the last sample of the store where that is later.
func NewMonitor(
	ctx context.Context, store *Store, now clock.PassiveClock, targets func() []Target, files ...string,
) (*Monitor, error) {
	m := &Monitor{
		store: store, scraper: scraper{store: store}, targets: targets,
		now: now.Now().Truncate(ScrapeEvery),
	}
	if _, last := store.Times(); last.After(m.now) {
		m.now = last
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, Queryable: store.queryable(), Appendable: store.db, Parser: Parser(),
		QueryFunc:  rules.EngineQueryFunc(store.engine, store.queryable()),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	const address = "http://prometheus.example.com"
	groups, errs := manager.LoadGroups(ScrapeEvery, labels.EmptyLabels(), address, nil, false, files...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("loading rules: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		m.groups = append(m.groups, groups[name])
	}
	return m, nil
}

// Now returns the instant of the last step.
func (m *Monitor) Now() time.Time { return m.now }

// Step moves the clock by ScrapeEvery, scrapes, and evaluates the rules.
func (m *Monitor) Step(ctx context.Context) error {
	m.now = m.now.Add(ScrapeEvery)
	if err := m.scraper.scrape(ctx, m.now, m.targets()); err != nil {
		return err
	}
	for _, group := range m.groups {
		group.Eval(ctx, m.now)
		for _, rule := range group.Rules() {
			if err := rule.LastError(); err != nil {
				return fmt.Errorf("evaluating %s: %w", rule.Name(), err)
			}
		}
	}
	return nil
}

// Run steps for a while on the clock of the monitor.
func (m *Monitor) Run(ctx context.Context, lasts time.Duration) error {
	for end := m.now.Add(lasts); m.now.Before(end); {
		if err := m.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Alert is a series for which an alerting rule holds.
type Alert struct {
	// Name is that of the rule.
	Name string
	// State is pending or firing.
	State State
	// Labels and Annotations are as a person gets them.
	Labels, Annotations map[string]string
}

// Alerts returns all alerts that are pending or firing after the last step.
func (m *Monitor) Alerts() []Alert {
	var all []Alert
	for _, group := range m.groups {
		for _, rule := range group.AlertingRules() {
			for _, active := range rule.ActiveAlerts() {
				all = append(all, Alert{
					Name: rule.Name(), State: active.State, Labels: active.Labels.Map(), Annotations: active.Annotations.Map(),
				})
			}
		}
	}
	return all
}

// State returns the highest state of an alert after the last step.
func (m *Monitor) State(name string) State {
	state := Inactive
	for _, alert := range m.Alerts() {
		if alert.Name == name {
			state = max(state, alert.State)
		}
	}
	return state
}
