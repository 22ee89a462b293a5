package suite

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// Result says what became of a scenario.
type Result struct {
	// Suite and Name name the scenario, Doc is its sentence.
	Suite, Name, Doc string
	// Took is how long it took, with its cleanups.
	Took time.Duration
	// Err is why it failed.
	Err error
	// Skipped is why it was not played; empty when it was.
	Skipped string
	// Notes are figures and other sentences.
	Notes []string
}

func (r Result) passed() bool { return r.Err == nil && r.Skipped == "" }

// verdict is the result in one word.
func (r Result) verdict() string {
	switch {
	case r.Skipped != "":
		return "not played"
	case r.Err != nil:
		return "FAILED"
	}
	return "passed"
}

// print prints the result as soon as it is known.
func (r Result) print(out io.Writer) {
	fmt.Fprintf(out, "%s %-10s %s/%s after %s\n", time.Now().UTC().Format(time.TimeOnly), r.verdict(), r.Suite, r.Name,
		r.Took.Round(100*time.Millisecond))
	for _, note := range r.Notes {
		fmt.Fprintf(out, "         %s\n", note)
	}
	if r.Skipped != "" {
		fmt.Fprintf(out, "         %s\n", r.Skipped)
	}
	if r.Err != nil {
		fmt.Fprintf(out, "         %s\n", strings.ReplaceAll(r.Err.Error(), "\n", "\n         "))
	}
}

// failed reports whether a scenario did not pass.
func failed(results []Result) bool {
	for _, r := range results {
		if !r.passed() {
			return true
		}
	}
	return false
}

// Summarize prints a table of all results, and returns an error when a scenario did not pass.
func Summarize(out io.Writer, results []Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tTIME\tRESULT")
	bad, total := 0, time.Duration(0)
	for _, r := range results {
		fmt.Fprintf(table, "%s/%s\t%.1f s\t%s\n", r.Suite, r.Name, r.Took.Seconds(), r.verdict())
		total += r.Took
		if !r.passed() {
			bad++
		}
	}
	fmt.Fprintf(table, "all\t%.0f s\t%d of %d passed\n", total.Seconds(), len(results)-bad, len(results))
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d scenarios did not pass", bad, len(results))
	}
	if len(results) == 0 {
		return errors.New("no scenario was played")
	}
	return nil
}

// The JUnit file, as CI systems read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the results as a JUnit file. Results of a suite stand together.
func WriteJUnit(path string, results []Result) error {
	content, err := xml.MarshalIndent(junit(results), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the JUnit file: %w", err)
	}
	if err := os.WriteFile(path, append([]byte(xml.Header), content...), 0o644); err != nil {
		return fmt.Errorf("writing the JUnit file: %w", err)
	}
	return nil
}

func junit(results []Result) junitSuites {
	var all junitSuites
	for _, r := range results {
		if last := len(all.Suites) - 1; last < 0 || all.Suites[last].Name != r.Suite {
			all.Suites = append(all.Suites, junitSuite{Name: r.Suite})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Class: r.Suite, Name: r.Name, Time: seconds(r.Took), Output: strings.Join(r.Notes, "\n")}
		switch {
		case r.Skipped != "":
			c.Skipped = &junitMessage{Message: r.Skipped}
			s.Skipped++
		case r.Err != nil:
			first, _, _ := strings.Cut(r.Err.Error(), "\n")
			c.Failure = &junitMessage{Message: first, Text: r.Err.Error()}
			s.Failures++
		}
		s.Tests++
		s.took += r.Took
		s.Time = seconds(s.took)
		s.Cases = append(s.Cases, c)
	}
	return all
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
