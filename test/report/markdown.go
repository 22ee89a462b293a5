package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Markdown returns the report for people, beside the last one; nil means that there is none.
func (r *Report) Markdown(last *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Report\n\n`make report` wrote this. Each part can be repeated alone, by its command.\n\n")
	fmt.Fprintf(&b, "| | |\n|---|---|\n| date | %s |\n| commit | %s |\n", r.Date.UTC().Format(time.DateTime), r.Commit)
	for _, row := range append(append([]Row{}, r.Machine...), r.Versions...) {
		writeRow(&b, row.Name, row.Value)
	}
	writeRow(&b, "seed", fmt.Sprint(r.Seed))
	r.writeRatios(&b, last)
	for _, part := range r.Parts {
		part.write(&b)
	}
	return b.String()
}

// writeRatios writes what is compared with the last report.
func (r *Report) writeRatios(b *strings.Builder, last *Report) {
	if !slices.ContainsFunc(r.Parts, func(part Result) bool { return len(part.Ranges()) > 0 }) {
		return
	}
	was := map[string]Range{}
	if last != nil {
		for _, part := range last.Parts {
			for _, one := range part.Ranges() {
				was[part.Title+one.Name] = one
			}
		}
		fmt.Fprintf(b, "\n## Beside the same writes without us\n\nThe report before is of %s, commit %s.\n",
			last.Date.UTC().Format(time.DateOnly), last.Commit)
	} else {
		fmt.Fprintf(b, "\n## Beside the same writes without us\n\nThere was no report before.\n")
	}
	fmt.Fprintf(b, "\n| figure | before | now | |\n|---|---|---|---|\n")
	for _, part := range r.Parts {
		for _, is := range part.Ranges() {
			before, change := "", ""
			if one, known := was[part.Title+is.Name]; known {
				before, change = one.String(), Change(one, is)
			}
			writeRow(b, fmt.Sprintf("%s: %s", strings.ToLower(part.Title), is.Name), before, is.String(), change)
		}
	}
}

// write writes one part: the rows of its first run, and how the others differ is in the table of ratios.
func (r Result) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n`%s`, %s", r.Title, shell(r.Command), (time.Duration(r.Seconds) * time.Second).String())
	if r.Runs > 1 {
		fmt.Fprintf(b, " for %d runs, of which this is the first", r.Runs)
	}
	b.WriteString(".\n")
	if r.Failed != "" {
		fmt.Fprintf(b, "\n**It failed.** The end of its output:\n\n```\n%s\n```\n", r.Failed)
	}
	if len(r.Tables) == 0 || len(r.Tables[0]) == 0 {
		return
	}
	b.WriteString("\n| | |\n|---|---|\n")
	for _, row := range r.Tables[0] {
		writeRow(b, row.Name, row.Value)
	}
}

// writeRow writes a row of a table.
func writeRow(b *strings.Builder, cells ...string) {
	for _, cell := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(strings.ReplaceAll(cell, "|", `\|`), "\n", " "))
	}
	b.WriteString("|\n")
}

// shell returns a command as one types it.
func shell(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		if name, value, assigned := strings.Cut(word, "="); assigned && strings.Contains(value, " ") {
			word = name + "='" + value + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}
