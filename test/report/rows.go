package report

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	columns = regexp.MustCompile(`\s{2,}`)
	logged  = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (.*)$`)
	passed  = regexp.MustCompile(`^ok\s+(\S+)\s+([0-9.]+s)`)
	ratio   = regexp.MustCompile(`(?:^|[ ,])([0-9.]+)x(?: of |$)`)
)

// Rows returns the rows of the tables in the output of a command: lines with two columns or more, which have at least
// two spaces between them; what a test logged; and the packages that passed.
func Rows(out string) []Row {
	var rows []Row
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n ")
		if found := logged.FindStringSubmatch(line); found != nil {
			rows = append(rows, Row{Name: found[1]})
			continue
		}
		if found := passed.FindStringSubmatch(line); found != nil {
			rows = append(rows, Row{Name: found[1], Value: "ok, " + found[2]})
			continue
		}
		cells := columns.Split(strings.TrimSpace(line), -1)
		if len(cells) > 1 && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			rows = append(rows, Row{Name: cells[0], Value: strings.Join(cells[1:], "; ")})
		}
	}
	return rows
}

// Ratio returns the ratio to what was measured beside it, where a value has one.
func Ratio(value string) (float64, bool) {
	found := ratio.FindStringSubmatch(strings.Split(value, ";")[0])
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	return n, err == nil
}

// maxEnd is how many lines of the output of a command that failed are kept.
const maxEnd = 30

// end returns the last lines of an output.
func end(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-maxEnd):], "\n")
}
