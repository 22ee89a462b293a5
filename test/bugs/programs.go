package bugs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Program notices a bug: a test, or several.
type Program struct {
	Name string
	// What says what it is, for a table.
	What string
	// Fleet reports whether it plays a fleet, or a proxy that lies; others test one thing each.
	Fleet bool
	// folders are its packages; none means those that the bug changes.
	folders []string
	// args follow "go test", one run after the other, until one notices the bug.
	runs [][]string
	// most is how long a run may take before it counts as hung.
	most time.Duration
}

// Programs are all of them.
func Programs() []Program {
	virtual := []string{"./test/virtual"}
	works := func(seed string) []string { return []string{"-run", "^TestADayOfWorks$", "-args", "-seed", seed} }
	return []Program{
		{
			Name: "day", What: "a day of a fleet in virtual time, three seeds", Fleet: true, folders: virtual,
			runs: [][]string{day("1"), day("2"), day("3")}, most: 5 * time.Minute,
		},
		{
			Name: "works", What: "a day of works that people write, in virtual time, two seeds", Fleet: true, folders: virtual,
			runs: [][]string{works("1"), works("2")}, most: 15 * time.Minute,
		},
		{
			Name: "ways", What: "ways to one state, with and without lies", Fleet: true, folders: virtual,
			runs: [][]string{{"-run", "^TestTwoWaysToOneState$"}}, most: 15 * time.Minute,
		},
		{
			Name: "lies", What: "edits while the hub lies to its manager", Fleet: true, folders: virtual,
			runs: [][]string{{"-run", "^TestLiesDeleteNothing$", "-args", "-ways", "24"}}, most: 15 * time.Minute,
		},
		{
			Name: "games", What: "generated fleets against the decisions of the hub manager", Fleet: true,
			folders: []string{"./test/fleets", "./hub/rollout/planner"}, runs: [][]string{nil}, most: 20 * time.Minute,
		},
		{
			Name: "storm", What: "a short storm on real control planes", Fleet: true,
			folders: []string{"./test/integration/storm"}, runs: [][]string{nil}, most: 15 * time.Minute,
		},
		{Name: "own", What: "tests of the package that has the bug", runs: [][]string{nil}, most: 15 * time.Minute},
	}
}

// ProgramOf returns the program of a name. "day:7" is a day with that seed alone, for a bug that few histories show.
func ProgramOf(name string) (Program, error) {
	name, seed, seeded := strings.Cut(name, ":")
	i := slices.IndexFunc(Programs(), func(p Program) bool { return p.Name == name })
	if i < 0 || (seeded && name != "day") {
		return Program{}, fmt.Errorf("there is no program %q", name)
	}
	program := Programs()[i]
	if seeded {
		program.runs = [][]string{day(seed)}
	}
	return program, nil
}

// day is a day with a seed.
func day(seed string) []string {
	return []string{"-run", "^TestADayOfAFleet$", "-args", "-seed", seed, "-clusters", "10", "-per-hour", "120"}
}
