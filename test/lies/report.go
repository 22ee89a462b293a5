package lies

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Table is a table of outcomes.
type Table struct{ all []Outcome }

// Head returns the first line.
func (t *Table) Head() string { return "seed  violations  calm   took   lies  scenes" }

// Line adds an outcome and returns its line, with its violations below.
func (t *Table) Line(one Outcome) string {
	t.all = append(t.all, one)
	calm, took := one.Calm.Round(100*time.Millisecond), one.Took.Round(100*time.Millisecond)
	lines := []string{fmt.Sprintf("%d  %d  %s  %s  %s  %s", one.Seed, len(one.Violations), calm, took, counts(one.Lies),
		one.Scenes)}
	return strings.Join(append(lines, one.Violations...), "\n  ")
}

// Foot returns the sums.
func (t *Table) Foot() string {
	told, violations, slowest, took := map[string]int{}, 0, time.Duration(0), time.Duration(0)
	for _, one := range t.all {
		for name, count := range one.Lies {
			told[name] += count
		}
		violations, slowest, took = violations+len(one.Violations), max(slowest, one.Calm), took+one.Took
	}
	rows := [][2]string{
		{"plays", fmt.Sprint(len(t.all))},
		{"the longest until all was as people want", slowest.Round(100 * time.Millisecond).String()},
		{"violations", fmt.Sprint(violations)},
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		rows = append(rows, [2]string{"lies: " + name, fmt.Sprint(told[name])})
	}
	lines := []string{fmt.Sprintf("lies  %s", took.Round(time.Second))}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("  %-42s  %s", row[0], row[1]))
	}
	return strings.Join(lines, "\n")
}

// Check returns an error if anything was found.
func (t *Table) Check() error {
	for _, one := range t.all {
		if len(one.Violations) > 0 {
			return fmt.Errorf("seed %d found %d violations", one.Seed, len(one.Violations))
		}
	}
	return nil
}

// counts lists lies by kind.
func counts(told map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(told)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, told[name]))
	}
	return strings.Join(parts, ", ")
}
