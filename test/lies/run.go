package lies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// DefaultClusters is how many clusters a fleet has.
	DefaultClusters = 3
	// DefaultScenes is how many scenes a play has.
	DefaultScenes = 8
	// patience is how long nothing may get nearer to what people want when all say the truth, limit how long that may take
	// in all.
	patience, limit = 2 * time.Minute, 10 * time.Minute
	// quiet is how long nothing may be written then.
	quiet = 2 * time.Second
	// slowAfter is how long that takes before it tells what it waits for.
	slowAfter = 10 * time.Second
)

// Options are the size and the seeds of a run.
type Options struct {
	// Seeds are those of the plays, one after the other.
	Seeds []uint64
	// Lasts is after which time no play begins any more; until then there are as many as that takes, from the seeds after
	// the last one. 0 is to play all seeds once.
	Lasts time.Duration
	// Clusters is how many managed clusters there are; 0 means DefaultClusters.
	Clusters int
	// Scenes is how many scenes a play has; 0 means DefaultScenes.
	Scenes int
	// GoOn plays on after a violation.
	GoOn bool
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Dir receives logs and data, as in fleet.Options; empty means a temporary directory.
	Dir string
	// Samples receives what the programs use, as in fleet.Options; empty means nothing.
	Samples string
	// Log receives what happens; nil drops it.
	Log io.Writer
	// Each is called with the outcome of each play; nil drops it.
	Each func(Outcome)
}

// Outcome says what came of a play.
type Outcome struct {
	Seed   uint64
	Scenes string
	// Lies counts what the proxies lied about, by the names of package proxy.
	Lies map[string]int
	// Took is how long it took, Calm how long until all was as people wanted.
	Took, Calm time.Duration
	// Violations are what must not be; none is expected.
	Violations []string
}

// Run runs one play after the other on one fleet. The outcomes are complete even when there is an error.
func Run(ctx context.Context, o Options) ([]Outcome, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Clusters == 0 {
		o.Clusters = DefaultClusters
	}
	if o.Scenes == 0 {
		o.Scenes = DefaultScenes
	}
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.all(ctx)
	return outcomes, errors.Join(err, s.close())
}

// seeds are those of the options, and where the time bounds them the numbers that follow, as long as there is time.
func (o Options) seeds(began time.Time) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var last uint64
		for n := 0; n < len(o.Seeds) || o.Lasts > 0; n++ {
			if last++; n < len(o.Seeds) {
				last = o.Seeds[n]
			}
			if o.Lasts > 0 && time.Since(began) >= o.Lasts || !yield(last) {
				return
			}
		}
	}
}

// all plays all seeds.
func (s *stage) all(ctx context.Context) ([]Outcome, error) {
	var all []Outcome
	for seed := range s.seeds(time.Now()) {
		outcome, err := s.once(ctx, draw(seed, s.Clusters, s.Scenes))
		if ctx.Err() != nil {
			return all, context.Cause(ctx) // nothing can be said about a play that was broken off
		}
		all = append(all, outcome)
		if s.Each != nil {
			s.Each(outcome)
		}
		if err != nil {
			return all, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(outcome.Violations) > 0 && !s.GoOn {
			return all, nil
		}
	}
	return all, nil
}

// once plays a play.
func (s *stage) once(ctx context.Context, p play) (Outcome, error) {
	r := &run{stage: s, play: p, wants: newWants(p.name("")), strangers: map[scene]string{}}
	outcome, began, before := Outcome{Seed: p.seed, Scenes: p.scenes()}, time.Now(), s.liesTold()
	s.judge.forget()
	r.tell("seed %d, at once %d, lies early %t", p.seed, p.atOnce, p.early)
	err := r.all(ctx, &outcome)
	outcome.Took, outcome.Lies = time.Since(began), s.liesTold()
	for name, count := range before {
		if outcome.Lies[name] -= count; outcome.Lies[name] == 0 {
			delete(outcome.Lies, name)
		}
	}
	for i, what := range outcome.Violations {
		r.tell("VIOLATION %s", what)
		outcome.Violations[i] = fmt.Sprintf("seed %d: %s", p.seed, what)
	}
	return outcome, err
}

// liesTold counts the lies of all proxies.
func (s *stage) liesTold() map[string]int {
	sum := map[string]int{}
	for _, one := range s.proxies() {
		for name, count := range one.Told() {
			sum[name] += count
		}
	}
	return sum
}

// run is a play that runs.
type run struct {
	*stage
	play

	wants *wants
	// strangers are the clusters without an agent, by the scene that they are for.
	strangers map[scene]string
	// version counts the images.
	version int
}

// tell tells what happens.
func (r *run) tell(format string, args ...any) {
	fmt.Fprintf(r.Log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// all sets the scene, plays, lets all come to rest, and clears the stage.
func (r *run) all(ctx context.Context, outcome *Outcome) error {
	if r.early {
		r.lie()
	}
	err := r.set(ctx)
	if err == nil && !r.early {
		if wrong := r.settle(ctx); len(wrong) > 0 {
			outcome.Violations = append(outcome.Violations, "honest API servers, before the play: "+strings.Join(wrong, "; "))
			err = errors.New("it does not begin")
		}
		r.lie()
	}
	for _, one := range r.steps {
		if err == nil && fleet.Pause(ctx, one.before) {
			r.tell("%s", one)
			err = r.perform(ctx, one)
		}
	}
	r.honest()
	if err != nil {
		outcome.Violations = append(outcome.Violations, r.judge.found()...)
		return err
	}
	began := time.Now()
	if wrong := r.settle(ctx); len(wrong) > 0 {
		outcome.Violations = append(outcome.Violations, "not as people want: "+strings.Join(wrong, "; "))
	}
	outcome.Calm = time.Since(began)
	r.tell("calm after %s", outcome.Calm.Round(time.Millisecond))
	if wrote := r.rest(ctx); len(wrote) > 0 {
		outcome.Violations = append(outcome.Violations, "writes do not end: "+strings.Join(wrote, "; "))
	}
	outcome.Violations = append(r.judge.found(), outcome.Violations...)
	if left := r.clear(ctx); len(left) > 0 {
		outcome.Violations = append(outcome.Violations, "left: "+strings.Join(left, "; "))
	}
	return nil
}

// lie lets all proxies lie, each in its own way.
func (r *run) lie() {
	r.keeper.says(false)
	lie := func(whose string, p *proxy.Proxy, lies proxy.Lies) {
		r.tell("%s: %s", whose, lies)
		p.Lie(lies)
	}
	lie("the hub to its manager", r.toHub, r.ofManager)
	for i, one := range r.spokes {
		lie("the hub to the agent of "+one.Name, one.toHub, r.ofHub[i])
		if r.ofHub[i].Date != 0 {
			r.judge.mislead(one.Name)
		}
		lie(one.Name+" to its agent", one.toOwn, r.ofOwn[i])
	}
}

// honest lets all say the truth.
func (r *run) honest() {
	for _, one := range r.proxies() {
		one.Link.Mend()
		one.Honest()
	}
	r.keeper.says(true)
	r.tell("honest; %d programs were started again", r.keeper.again)
}

// settle waits until all is as people want, as long as it gets nearer to that, and returns what is not.
func (r *run) settle(ctx context.Context) []string {
	began := time.Now()
	last, since, told := []string(nil), began, false
	for {
		var wrong []string
		for _, one := range r.spokes {
			v, err := r.look(ctx, one, r.wants.prefix)
			if err != nil {
				wrong = append(wrong, err.Error())
				continue
			}
			wrong = append(wrong, r.wants.differences(one.Name, v)...)
		}
		if len(wrong) == 0 {
			return nil
		}
		if !slices.Equal(wrong, last) {
			last, since, told = wrong, time.Now(), false
		}
		if !told && time.Since(since) > slowAfter {
			told = true
			r.tell("still\n  %s", strings.Join(wrong, "\n  "))
		}
		if time.Since(since) > patience || time.Since(began) > limit || !fleet.Pause(ctx, 100*time.Millisecond) {
			return wrong
		}
	}
}

// rest waits until the programs have written nothing for a while, and returns what they wrote last otherwise.
func (r *run) rest(ctx context.Context) []string {
	began := time.Now()
	for {
		from := time.Now()
		if !fleet.Pause(ctx, quiet) {
			return nil
		}
		var wrote []string
		for _, one := range r.proxies() {
			for _, w := range one.Writes() {
				if w.At.After(from) && w.Code < 300 && !renews(w) {
					wrote = append(wrote, fmt.Sprintf("%s %s by %s", w.Method, w.Path, w.Client))
				}
			}
		}
		if len(wrote) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return wrote
		}
	}
}

// renews reports whether a request is part of the renewal of a certificate.
func renews(w proxy.Write) bool {
	return strings.Contains(w.Path, "/certificatesigningrequests") || strings.Contains(w.Path, "/secrets")
}

// waitFor waits for something for a while and tells when it did not come.
func (r *run) waitFor(ctx context.Context, what string, within time.Duration, holds func(context.Context) error) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("after %s", within))
	defer cancel()
	err := fleet.Wait(ctx, what, nil, holds)
	if err != nil {
		r.tell("  %v", err)
	}
	return err == nil
}
