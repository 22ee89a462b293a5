package fleets

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// maxViolations is how many violations of a run are kept; all are counted.
const maxViolations = 10

// Property is something that holds for every fleet.
type Property struct {
	// Name is the name of the row.
	Name string
	// Play plays one game.
	Play func(*Game)
}

// Game is one generated world and what is found out about it.
type Game struct {
	// Random decides everything in the game.
	Random *rand.Rand
	// Steps is how many turns the game took, Decisions how many decisions were made.
	Steps, Decisions int
	violations       []string
	// rules are the rules that were looked at.
	rules map[string]*ruled
}

// ruled is how often a rule was looked at in a game, and whether it was violated.
type ruled struct {
	checks   int
	violated bool
}

// Rule reports that a named rule was looked at, and whether it holds; format says what it is that does not.
func (g *Game) Rule(name string, holds bool, format string, arguments ...any) {
	if g.rules == nil {
		g.rules = map[string]*ruled{}
	}
	rule := g.rules[name]
	if rule == nil {
		rule = &ruled{}
		g.rules[name] = rule
	}
	rule.checks++
	if !holds {
		rule.violated = true
		g.Violate(name+": "+format, arguments...)
	}
}

// Violate reports that a property does not hold.
func (g *Game) Violate(format string, arguments ...any) {
	g.violations = append(g.violations, fmt.Sprintf("step %d: ", g.Steps)+fmt.Sprintf(format, arguments...))
}

// Violated reports whether a property did not hold. A game may end then.
func (g *Game) Violated() bool { return len(g.violations) > 0 }

// chance reports true once in so many times.
func (g *Game) chance(once int) bool { return g.Random.IntN(once) == 0 }

// Options are what a run plays.
type Options struct {
	// Seed decides all games, First is the number of the first of them, and Games how many there are.
	Seed         uint64
	First, Games int
	// Workers is how many games are played at the same time.
	Workers int
}

// Tally holds what a run found.
type Tally struct {
	Name                    string
	Games, Steps, Decisions int
	Took                    time.Duration
	// Violated is how many games violated the property, Violations are the first of them in words.
	Violated   int
	Violations []string
	// Rules are the rules that were looked at, by their names.
	Rules map[string]RuleTally
}

// RuleTally holds what a run found about one rule: the games and the times that it was looked at, and the games that
// violated it.
type RuleTally struct{ Games, Checks, Violated int }

// Run plays the games of one property. It ends early when the context does.
func Run(ctx context.Context, p Property, o Options) Tally {
	began := time.Now()
	tallies := make([]Tally, max(1, o.Workers))
	var group sync.WaitGroup
	for worker := range tallies {
		group.Go(func() {
			for n := o.First + worker; n < o.First+o.Games && ctx.Err() == nil; n += len(tallies) {
				tallies[worker].play(p, o.Seed, n)
			}
		})
	}
	group.Wait()
	sum := Tally{Name: p.Name, Took: time.Since(began), Rules: map[string]RuleTally{}}
	for _, t := range tallies {
		sum.Games += t.Games
		sum.Steps += t.Steps
		sum.Decisions += t.Decisions
		sum.Violated += t.Violated
		sum.Violations = append(sum.Violations, t.Violations...)
		for name, r := range t.Rules {
			of := sum.Rules[name]
			sum.Rules[name] = RuleTally{of.Games + r.Games, of.Checks + r.Checks, of.Violated + r.Violated}
		}
	}
	sum.Violations = sum.Violations[:min(len(sum.Violations), maxViolations)]
	return sum
}

// play plays one game.
func (t *Tally) play(p Property, seed uint64, number int) {
	// The number is not negative; its bits are what counts.
	g := &Game{Random: rand.New(rand.NewPCG(seed, uint64(number)))}
	p.Play(g)
	t.Games++
	t.Steps += g.Steps
	t.Decisions += g.Decisions
	for name, r := range g.rules {
		if t.Rules == nil {
			t.Rules = map[string]RuleTally{}
		}
		of := t.Rules[name]
		of.Games++
		of.Checks += r.checks
		if r.violated {
			of.Violated++
		}
		t.Rules[name] = of
	}
	if g.Violated() {
		t.Violated++
		if len(t.Violations) < maxViolations {
			t.Violations = append(t.Violations, fmt.Sprintf("seed %d, game %d, %s", seed, number, g.violations[0]))
		}
	}
}

// Print writes the tallies as one table, the rules of each as another one, and below them the violations.
func Print(w io.Writer, seed uint64, tallies []Tally) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "seed %d\tfleets\tsteps\tdecisions\tdecisions/s\tviolations\n", seed)
	for _, t := range tallies {
		perSecond := float64(t.Decisions) / max(t.Took.Seconds(), 1e-9)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.0f\t%d\n", t.Name, t.Games, t.Steps, t.Decisions, perSecond, t.Violated)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	for _, t := range tallies {
		if len(t.Rules) == 0 {
			continue
		}
		fmt.Fprintf(table, "\nrule of %s\tfleets\ttimes\tviolations\n", t.Name)
		for _, name := range slices.Sorted(maps.Keys(t.Rules)) {
			r := t.Rules[name]
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", name, r.Games, r.Checks, r.Violated)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("printing the rules: %w", err)
		}
	}
	for _, t := range tallies {
		for _, violation := range t.Violations {
			fmt.Fprintf(w, "%s: %s\n", t.Name, violation)
		}
	}
	return nil
}

// Violated reports whether any run found a violation.
func Violated(tallies []Tally) bool {
	return slices.ContainsFunc(tallies, func(t Tally) bool { return t.Violated > 0 })
}
