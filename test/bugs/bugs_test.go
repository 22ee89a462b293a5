package bugs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEachBugCanBePutBack keeps the list true when the code changes.
func TestEachBugCanBePutBack(t *testing.T) {
	all, err := Read("list")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, bug := range all {
		files, err := bug.Apply("../..")
		require.NoError(t, err)
		for file, content := range files {
			now, err := os.ReadFile(filepath.Join("../..", file))
			require.NoError(t, err)
			assert.NotEqual(t, string(now), content, "bug %s changes %s", bug.Name, file)
		}
		for _, name := range bug.Play {
			_, err := ProgramOf(name)
			assert.NoError(t, err, "bug %s", bug.Name)
		}
	}
}

const example = `What: Nobody is told
From: a reader
Play: day, own
Tests: d
File: a/b.go
<<<<<<<
	told()
=======
>>>>>>>
File: a/c.go
<<<<<<<
x
=======
y
>>>>>>>
`

func TestAProgramMayHaveASeed(t *testing.T) {
	program, err := ProgramOf("day:7")
	require.NoError(t, err)
	assert.Equal(t, [][]string{day("7")}, program.runs)
	for _, name := range []string{"night", "games:7"} {
		_, err := ProgramOf(name)
		require.ErrorContains(t, err, "no program", name)
	}
}

func TestAProgramThatHadNoProcessorSaysNothing(t *testing.T) {
	const late, most = "panic: test timed out after 5m0s\nrunning tests:", 5 * time.Minute
	for sentence, tc := range map[string]struct {
		output  string
		used    time.Duration
		starved bool
	}{
		"it hangs in a loop":              {late, most, false},
		"others had the processor":        {late, 2 * time.Minute, true},
		"it found something":              {"selected-stays: the add-on is being deleted", time.Minute, false},
		"it ended beside other work":      {"ok", time.Minute, false},
		"a panic of the bug has no limit": {"panic: a defect", time.Minute, false},
	} {
		assert.Equal(t, tc.starved, starved(tc.output, tc.used, most), sentence)
	}
}

func TestABugHasEdits(t *testing.T) {
	bug, err := parse("one", example)
	require.NoError(t, err)
	assert.Equal(t, Bug{
		Name: "one", What: "Nobody is told", From: "a reader", Play: []string{"day", "own"}, Tests: []string{"d"},
		Edits: []Edit{{"a/b.go", "\ttold()\n", ""}, {"a/c.go", "x\n", "y\n"}},
	}, bug)
	assert.Equal(t, []string{"./a", "./d"}, bug.Folders())
	for sentence, tc := range map[string]struct{ content, want string }{
		"no edit":           {"What: a\nFrom: b\nPlay: day\n", "needs What, From, Play and an edit"},
		"no file":           {"<<<<<<<\na\n=======\nb\n>>>>>>>\n", "no File"},
		"no end":            {"File: a\n<<<<<<<\na\n=======\nb\n", "no line >>>>>>>"},
		"no middle":         {"File: a\n<<<<<<<\na\n", "no line ======="},
		"a key of its own":  {"Why: so\n", `unknown key "Why"`},
		"a line without it": {"so\n", "neither a key"},
	} {
		_, err := parse("one", tc.content)
		require.ErrorContains(t, err, tc.want, sentence)
	}
}

func TestATextThatIsGoneOrThereTwiceIsAnError(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "x.go"), []byte("a\nb\nb\n"), 0o600))
	for good, want := range map[string]string{"b\n": "2 times", "c\n": "0 times"} {
		_, err := Bug{Name: "one", Edits: []Edit{{"x.go", good, "d\n"}}}.Apply(root)
		require.ErrorContains(t, err, want)
	}
	files, err := Bug{Edits: []Edit{{"x.go", "a\n", "c\n"}, {"x.go", "c\nb\n", "d\n"}}}.Apply(root)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"x.go": "d\nb\n"}, files, "the second edit sees the first")
}

// TestABugIsNoticed plays a module of its own, with a bug that its test notices and one that it does not.
func TestABugIsNoticed(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25\n",
		"m.go":   "package m\n\nfunc one() int { return 1 }\n\nfunc two() int { return 2 }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() != 1 {\n" +
			"\t\tt.Error(\"one is not 1\")\n\t}\n}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	own := []Program{{Name: "own", runs: [][]string{nil}, most: time.Minute}}
	with := func(good, bad string) Bug { return Bug{Name: bad, Edits: []Edit{{"m.go", good, bad}}} }
	outcomes, err := Play(t.Context(), root, with("return 1", "return 3"), own, false)
	require.NoError(t, err)
	require.Len(t, outcomes, 1)
	assert.True(t, outcomes[0].Noticed)
	assert.Equal(t, "one is not 1", outcomes[0].Said)
	outcomes, err = Play(t.Context(), root, with("return 2", "return 3"), own, false)
	require.NoError(t, err)
	assert.False(t, outcomes[0].Noticed)
	_, err = Play(t.Context(), root, with("return 2", "return nothing"), own, false)
	require.ErrorContains(t, err, "does not compile")
}

func TestThePageCountsWhatNoticedABug(t *testing.T) {
	one, two, three := Bug{Name: "1", What: "One"}, Bug{Name: "2", What: "Two"}, Bug{Name: "3", What: "Three"}
	outcomes := []Outcome{
		{Bug: one, Program: "day", Took: 3 * time.Second}, {Bug: one, Program: "storm", Noticed: true, Said: "a|b"},
		{Bug: two, Program: "day"}, {Bug: two, Program: "own", Noticed: true, Said: "c"}, {Bug: three, Program: "own"},
	}
	assert.Equal(t, Tally{All: 3, Fleet: 1, Other: 1}, Count(outcomes))
	var page bytes.Buffer
	require.NoError(t, Write(&page, outcomes))
	assert.Contains(t, page.String(), "3 of them: 1 were noticed by a program that plays a fleet or lies, 1 only by tests of their own")
	assert.Contains(t, page.String(), "| One |  | storm | 0s | a\\|b | day |\n")
	assert.Contains(t, page.String(), "| Three |  |  |  |  | own |\n")
}
