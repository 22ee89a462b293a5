package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

func TestWhatATextOfOthersMayDo(t *testing.T) {
	for sentence, tc := range map[string]struct{ text, safe string }{
		"plain words stay":                 {"a b", "a b"},
		"words of other languages stay":    {"Größe 大きさ", "Größe 大きさ"},
		"it stays on one line":             {"a\nb\r\n\tc", "a b c"},
		"it sends nothing to the terminal": {"\x1b[2J\x07", `\u001b[2J\u0007`},
		"it turns no direction":            {"\u202egnp\u2066", `\u202egnp\u2066`},
		"it has no invisible characters":   {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"bytes that are no text are shown": {"\xff", `\ufffd`},
		"nothing stays nothing":            {"  ", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.safe, Safe(tc.text))
		})
	}
	assert.Equal(t, `  a  b\u001b`, Terminal{}.Line("  a\t b\x1b \t"), "a line keeps its spaces")
}

func TestATextFitsItsPlace(t *testing.T) {
	assert.Equal(t, "abc", Fit("abc", 3))
	assert.Equal(t, "äö...", Fit("äöüßää", 5))
	assert.Equal(t, "ab", Fit("abcdef", 2))
	assert.Equal(t, []string{"aa bb", "cc"}, Wrap("aa bb cc", 5))
	assert.Equal(t, []string{"aa", "bbbbb", "bb c"}, Wrap("aa bbbbbbb c", 5), "a word that no line takes is cut")
	assert.Empty(t, Wrap(" ", 5))
}

func TestWhatATerminalShows(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for sentence, tc := range map[string]struct {
		environment map[string]string
		width       int
		ascii       bool
	}{
		"a pipe":                        {nil, 120, false},
		"a width that is asked for":     {map[string]string{"COLUMNS": "80"}, 80, false},
		"a width that is too small":     {map[string]string{"COLUMNS": "10"}, 60, false},
		"a width that is no number":     {map[string]string{"COLUMNS": "x"}, 120, false},
		"the plain locale":              {map[string]string{"LANG": "C"}, 120, true},
		"the locale that counts more":   {map[string]string{"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, 120, false},
		"the plain locale with letters": {map[string]string{"LANG": "C.UTF-8"}, 120, false},
		"the locale of characters":      {map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "C"}, 120, true},
		"that of all, before it":        {map[string]string{"LC_ALL": "C.utf8", "LC_CTYPE": "C", "LANG": "C"}, 120, false},
		"a locale of another encoding":  {map[string]string{"LANG": "de_DE.ISO-8859-15@euro"}, 120, true},
		"a locale without an encoding":  {map[string]string{"LANG": "de_DE"}, 120, false},
		"an empty one, as in a pod":     {map[string]string{"LANG": ""}, 120, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := New(&bytes.Buffer{}, func(name string) string { return tc.environment[name] }, now)
			assert.Equal(t, tc.width, got.Width)
			assert.Equal(t, tc.ascii, got.ASCII)
			assert.False(t, got.Color, "no colour in a pipe")
		})
	}
}

func TestTheAgeOfAnInstant(t *testing.T) {
	terminal := Terminal{Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	for want, age := range map[string]time.Duration{"2m": 2 * time.Minute, "0s": -3 * time.Hour} {
		at := terminal.Now.Add(-age)
		assert.Equal(t, want, terminal.Since(&at))
	}
	assert.Empty(t, terminal.Since(nil))
	assert.Empty(t, terminal.Since(&time.Time{}))
}

func TestAnswersAreASCIIWhereOnlyThatIsShown(t *testing.T) {
	var out bytes.Buffer
	terminal := Terminal{Out: &out, Width: 80, ASCII: true, Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	at := terminal.Now.Add(-time.Hour)
	require.NoError(t, terminal.Trace(report.Trace{Kind: "Pod", Name: "ö", Links: []report.Link{
		{Step: "object", Kind: "Pod", Name: "ö", Evidence: "ü", Made: &at, Writers: []report.Writer{{Manager: "ä", At: &at}}},
	}}))
	require.NoError(t, terminal.Events([]report.Event{{Kind: "Pod", Name: "ö", Message: "ü", Last: at}}, true))
	require.NoError(t, terminal.Gaps([]fleet.Gap{{What: "ö"}, {What: "ö", Silent: true, Why: "ü"}, {What: "ö", Missing: true}}))
	require.NoError(t, terminal.Tree(report.Node{Name: "ö", Children: []report.Node{{Name: "ä"}}}))
	for _, r := range out.String() {
		require.Less(t, r, rune(127), "%q", out.String())
	}
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 81)
	}
}

func TestColoursSayHowAStepIs(t *testing.T) {
	var out bytes.Buffer
	terminal := Terminal{Out: &out, Width: 80, Color: true}
	require.NoError(t, terminal.Chain(report.Chain{Kind: "addon", Name: "a", Steps: []report.Step{
		{Name: "one", State: report.OK}, {Name: "two", State: report.Failed}, {Name: "three", State: report.Warning, Lines: []string{"l"}},
	}}))
	for _, color := range []string{good + "ok", bad + "FAIL", dubious + "warn"} {
		assert.Contains(t, out.String(), color+plain)
	}
}

func TestATableKeepsItsWidth(t *testing.T) {
	var out bytes.Buffer
	terminal := Terminal{Out: &out, Width: 60}
	for width, lines := range map[int]int{20: 3, 40: 5} { // Beside a wide column there is no place: the last one is below.
		out.Reset()
		require.NoError(t, terminal.Table(Table{
			Headings: []string{"NAME", "MESSAGE"},
			Rows:     [][]string{{"a", strings.Repeat("x", 200)}, {strings.Repeat("y", width), "\x1b"}},
		}))
		written := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, written, lines)
		for _, line := range written {
			assert.LessOrEqual(t, len(line), 60)
			assert.NotContains(t, line, "\x1b")
		}
	}
}
