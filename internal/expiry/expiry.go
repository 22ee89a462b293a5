package expiry

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Kind is what certificates are for, in label kind.
type Kind string

// The kinds.
const (
	// Agent is the credential of an agent for its hub.
	Agent Kind = "agent"
	// AddOn is a credential that an agent gets for an add-on.
	AddOn Kind = "addon"
	// Webhook is what the webhook of the hub manager serves with.
	Webhook Kind = "webhook"
)

// Ends has the lives of the certificates that a program holds. A nil Ends has none. Use New.
type Ends struct {
	clock clock.PassiveClock
	lives kept.Map[holder, []causes.Life]

	ends, late *prometheus.Desc
}

// holder is who has certificates of a kind.
type holder struct {
	kind Kind
	name string
}

// New registers metrics spokelet_certificate_ends_timestamp_seconds and spokelet_certificates_late. The clock is the
// one by which the certificates end. A nil registerer registers none.
func New(registerer prometheus.Registerer, now clock.PassiveClock) (*Ends, error) {
	e := &Ends{
		clock: now,
		ends: prometheus.NewDesc("spokelet_certificate_ends_timestamp_seconds", "When the first certificate of a kind that "+
			"this program holds ends.", []string{"kind"}, nil),
		late: prometheus.NewDesc("spokelet_certificates_late", "Certificates of a kind that this program holds and that "+
			"should have been replaced.", []string{"kind"}, nil),
	}
	var err error
	if e, err = reconcile.RegisterMetric(registerer, e); err != nil {
		return nil, fmt.Errorf("registering the metrics of certificates: %w", err)
	}
	return e, nil
}

// Set sets the lives of the certificates that one holder has: an add-on, or the program itself, which has no name.
// Those without an end are left out, and a holder without any is forgotten.
func (e *Ends) Set(kind Kind, name string, lives ...causes.Life) {
	if e == nil {
		return
	}
	var known []causes.Life
	for _, life := range lives {
		if !life.To.IsZero() {
			known = append(known, life)
		}
	}
	e.lives.Change(holder{kind, name}, func([]causes.Life) ([]causes.Life, bool) { return known, len(known) > 0 })
}

// Reset forgets all holders of a kind.
func (e *Ends) Reset(kind Kind) {
	if e != nil {
		e.lives.Take(func(of holder, _ []causes.Life) bool { return of.kind == kind })
	}
}

// Describe implements prometheus.Collector.
func (e *Ends) Describe(ch chan<- *prometheus.Desc) {
	ch <- e.ends
	ch <- e.late
}

// Collect implements prometheus.Collector.
func (e *Ends) Collect(ch chan<- prometheus.Metric) {
	now, tally := e.clock.Now(), NewTally()
	e.lives.Each(func(of holder, lives []causes.Life) {
		for _, life := range lives {
			tally.Add(of.kind, life, now)
		}
	})
	for kind, end := range tally.First {
		ch <- prometheus.MustNewConstMetric(e.ends, prometheus.GaugeValue, float64(end.Unix()), string(kind))
		ch <- prometheus.MustNewConstMetric(e.late, prometheus.GaugeValue, float64(tally.Late[kind]), string(kind))
	}
}

// Tally is what is told of certificates: of each kind when the first one ends, where there is one, and how many should
// have been replaced.
type Tally struct {
	First map[Kind]time.Time
	Late  map[Kind]int
}

// NewTally returns a tally of none. The kinds are those that are told without any late one, too.
func NewTally(kinds ...Kind) Tally {
	t := Tally{First: map[Kind]time.Time{}, Late: map[Kind]int{}}
	for _, kind := range kinds {
		t.Late[kind] = 0
	}
	return t
}

// Add counts a certificate at an instant.
func (t Tally) Add(of Kind, life causes.Life, now time.Time) {
	if first, known := t.First[of]; !known || life.To.Before(first) {
		t.First[of] = life.To
	}
	if life.Late(now) {
		t.Late[of]++
	}
}
