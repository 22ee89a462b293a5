package bugs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tally counts what noticed the bugs.
type Tally struct {
	// All are the bugs, Fleet those that a fleet or a proxy noticed, Other those that only another program did.
	All, Fleet, Other int
}

// Count counts outcomes.
func Count(outcomes []Outcome) Tally {
	fleet, by := map[string]bool{}, map[string]int{}
	for _, p := range Programs() {
		fleet[p.Name] = p.Fleet
	}
	for _, o := range outcomes {
		rank := 0
		switch {
		case o.Noticed && fleet[o.Program]:
			rank = 2
		case o.Noticed:
			rank = 1
		}
		by[o.Bug.Name] = max(by[o.Bug.Name], rank)
	}
	tally := Tally{All: len(by)}
	for rank := range maps.Values(by) {
		switch rank {
		case 2:
			tally.Fleet++
		case 1:
			tally.Other++
		}
	}
	return tally
}

// head begins the page.
const head = `# Bugs that were put back

Each of these was found once and mended, with a test. "make bugs" puts each of them back, alone, and plays the programs
that look for broken [invariants](invariants.md), to see whether they notice it. It wrote this page.

%d of them: %d were noticed by a program that plays a fleet or lies, %d only by tests of their own, %d by none that was
played.

| program | is |
|---|---|
`

// longest is how much is quoted of what a program said.
const longest = 160

// Write writes a page with the bugs and what noticed each.
func Write(w io.Writer, outcomes []Outcome) error {
	tally := Count(outcomes)
	var text strings.Builder
	fmt.Fprintf(&text, head, tally.All, tally.Fleet, tally.Other, tally.All-tally.Fleet-tally.Other)
	for _, p := range Programs() {
		fmt.Fprintf(&text, "| %s | %s |\n", p.Name, p.What)
	}
	text.WriteString("\n| bug | found by | noticed by | after | which says | not by |\n|---|---|---|---|---|---|\n")
	byBug := map[string][]Outcome{}
	for _, o := range outcomes {
		byBug[o.Bug.Name] = append(byBug[o.Bug.Name], o)
	}
	for _, name := range slices.Sorted(maps.Keys(byBug)) {
		text.WriteString(row(byBug[name]))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// row is the line of a bug.
func row(outcomes []Outcome) string {
	var by, after, said, not []string
	for _, o := range outcomes {
		if !o.Noticed {
			not = append(not, o.Program)
			continue
		}
		by, after = append(by, o.Program), append(after, o.Took.Round(time.Second).String())
		quoted := strings.ReplaceAll(strings.TrimSpace(o.Said), "|", `\|`)
		if len(quoted) > longest {
			quoted = strings.ToValidUTF8(quoted[:longest], "") + "…"
		}
		said = append(said, quoted)
	}
	bug := outcomes[0].Bug
	columns := []string{
		bug.What, bug.From, strings.Join(by, ", "), strings.Join(after, ", "), strings.Join(said, "<br>"),
		strings.Join(not, ", "),
	}
	return "| " + strings.Join(columns, " | ") + " |\n"
}
