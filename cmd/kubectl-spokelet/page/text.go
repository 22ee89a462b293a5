package page

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/docs/operations"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// maxText is how many bytes of a text of an object are shown, and maxName of a name, which is as long as Kubernetes
	// lets it be.
	maxText, maxName = 1 << 10, 253
	// maxLong is maxText where the page is about that text.
	maxLong = 4 << 10
)

// functions are those of the templates. now is the time from which ages are counted.
func functions(now time.Time) template.FuncMap {
	return template.FuncMap{
		"cut": func(text string) string { return message.Cut(text, maxText) },
		"name": func(text string) string {
			return message.Cut(text, maxName)
		},
		"long": func(text string) string { return message.Cut(text, maxLong) },
		"age":  func(at *time.Time) string { return age(at, now) },
		"ends": func(at *time.Time) string { return ends(*at, now) },
		"day":  func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") },
		"hour": func(at time.Time) string { return at.UTC().Format("15:04") },
		"full": func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
		"iso":  func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"sign": sign, "word": word, "class": class, "count": count, "number": number,
		"to":      to,
		"waits":   func(clusters int32) string { return report.WaitsFor(int(clusters)) },
		"repeats": repeats, "span": duration.HumanDuration,
		"title": func(code causes.Code) string { return causes.Titles()[code] },
	}
}

// repeats reports whether a step of a chain has the message of its problem already.
func repeats(c *report.Chain) bool {
	return slices.ContainsFunc(c.Steps, func(s report.Step) bool { return s.Detail == c.Problem.Message })
}

// age is how long ago an instant is; empty for none.
func age(at *time.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(*at), 0))
}

// ends says when a certificate ends.
func ends(at, now time.Time) string {
	if !at.After(now) {
		return "ended " + duration.HumanDuration(now.Sub(at)) + " ago"
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}

// count is report.Count with separated thousands.
func count(n int, of string) string {
	return strings.Replace(report.Count(n, of), strconv.Itoa(n), number(n), 1)
}

// number writes a number with separated thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// signs are the marks of states, so that no colour is needed to tell them apart.
func signs() map[string]string {
	return map[string]string{
		string(report.StandsBadly): "✕", string(report.StandsBehind): "◌", string(report.StandsMoving): "▸",
		string(report.StandsWaiting): "…", string(report.StandsAbsent): "∅", string(report.StandsWell): "✓",
		string(report.StageFailed): "✕", string(report.StageComplete): "✓", string(report.StageAbsent): "∅",
		string(report.OK): "✓", string(report.Failed): "✕", string(report.Warning): "!", string(report.Waiting): "–",
	}
}

// sign is the mark of a state.
func sign(state any) string { return signs()[fmt.Sprint(state)] }

// word is a state in words.
func word(state any) string {
	if text := fmt.Sprint(state); text != string(report.Waiting) {
		return text
	}
	return "open"
}

// class is the class of a state in the style sheet.
func class(state any) string {
	switch fmt.Sprint(state) {
	case string(report.StandsBadly), string(report.StageFailed), string(report.Failed):
		return "bad"
	case string(report.StandsMoving):
		return "moving"
	case string(report.StandsWaiting):
		return "waiting"
	case string(report.Warning):
		return "warn"
	case string(report.StandsWell), string(report.StageComplete), string(report.OK):
		return "well"
	}
	return "unknown"
}

// to is the address of a view with parameters, in pairs of name and value; those that are empty are left out. A name
// that is longer than a name can be leads nowhere.
func to(view string, pairs ...any) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		value := fmt.Sprint(pairs[i+1])
		if len(value) > maxName {
			return "./"
		}
		if value != "" && value != "0" {
			values.Set(fmt.Sprint(pairs[i]), value)
		}
	}
	if len(values) == 0 {
		return view
	}
	return view + "?" + values.Encode()
}

// part is a part of a sentence of the page of messages.
type part struct {
	Text string
	Code bool
}

// explained returns the text of a code in the page of messages, by paragraphs; none for a code that it has not.
func explained(code causes.Code) [][]part {
	_, text, found := strings.Cut(operations.Messages(), "\n### "+string(code)+"\n")
	if !found {
		return nil
	}
	text, _, _ = strings.Cut(text, "\n#")
	var all [][]part
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var parts []part
		for i, one := range strings.Split(unlinked(strings.Join(strings.Fields(paragraph), " ")), "`") {
			if one != "" {
				parts = append(parts, part{Text: one, Code: i%2 == 1})
			}
		}
		all = append(all, parts)
	}
	return all
}

// unlinked returns a text of Markdown with the words of its links.
func unlinked(text string) string {
	for {
		before, rest, opens := strings.Cut(text, "](")
		_, after, closes := strings.Cut(rest, ")")
		at := strings.LastIndex(before, "[")
		if !opens || !closes || at < 0 {
			return text
		}
		text = before[:at] + before[at+1:] + after
	}
}
