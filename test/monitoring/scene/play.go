package scene

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// event is something that happens in a play.
type event struct {
	// at is when, as a part of the play, and until when it is repeated at each scrape; zero is once.
	at, until float64
	what      string
	do        func(context.Context) error
}

// events are those of a play: a rollout that goes through, one that stops, and trouble between them.
func (s *Scene) events() []event {
	changes := 0
	write := func(ctx context.Context) error {
		changes++
		return s.Write(ctx, fmt.Sprint("content ", changes))
	}
	return []event{
		{0.04, 0.90, "a work changes", write},
		{0.10, 0, "logs v2 is rolled out", func(ctx context.Context) error { return s.Roll(ctx, "v2") }},
		{0.22, 0.42, "others change objects", s.Drift},
		{0.15, 0.50, "a work comes and goes", s.Visit},
		{0.35, 0, "a cluster asks", s.Join},
		{0.36, 0.46, "an agent asks for too much", s.Knock},
		{0.45, 0, "an object stays", s.Block},
		{0.50, 0, "an object is refused", s.Refuse},
		{0.55, 0, "the hub loses a work", s.Lose},
		{0.62, 0, "logs v3 is rolled out, and stops", func(ctx context.Context) error {
			for _, cluster := range []string{"shop-018", "shop-019"} {
				s.Fail(cluster, "logs:v3")
			}
			return s.Roll(ctx, "v3")
		}},
		{0.78, 0, "an agent loses its hub", func(context.Context) error { s.CutSecond(); return nil }},
	}
}

// Play lets the fleet play for a while, in the time of the machine, and stores what its programs say.
func (s *Scene) Play(ctx context.Context, store *harness.Store, lasts time.Duration) error {
	now := clock.RealClock{}
	m, err := harness.NewMonitor(ctx, store, now, s.Targets)
	if err != nil {
		return err
	}
	begin, events := m.Now(), s.events()
	for m.Now().Sub(begin) < lasts {
		if !fleet.Pause(ctx, m.Now().Add(harness.ScrapeEvery).Sub(now.Now())) {
			return fmt.Errorf("playing: %w", context.Cause(ctx))
		}
		if err := m.Step(ctx); err != nil {
			return err
		}
		part := float64(m.Now().Sub(begin)) / float64(lasts)
		for i := range events {
			e := &events[i]
			if part < e.at || e.do == nil {
				continue
			}
			fmt.Fprintf(s.opts.Log, "%s: %s\n", m.Now().Sub(begin), e.what)
			if err := e.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", e.what, err)
			}
			if part >= e.until {
				e.do = nil
			}
		}
	}
	return nil
}
