package arch

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// maxDirectives is how many directives may silence a linter outside of tests. Each is a place where nobody looks any
// more, so there are few enough to read all of them.
const maxDirectives = 10

// directive is a comment that silences linters.
type directive struct {
	place   string
	linters []string
}

// directives returns the directives of the source, in its order.
func (s source) directives() []directive {
	var found []directive
	for _, f := range s.files {
		for _, group := range f.Comments {
			for _, comment := range group.List {
				text, is := strings.CutPrefix(comment.Text, "//nolint")
				if !is {
					continue
				}
				text, _, _ = strings.Cut(text, "//")
				p := s.set.Position(comment.Pos())
				found = append(found, directive{
					place:   fmt.Sprintf("%s:%d", strings.TrimPrefix(p.Filename, root+"/"), p.Line),
					linters: strings.Split(strings.TrimPrefix(strings.TrimSpace(text), ":"), ","),
				})
			}
		}
	}
	return found
}

// isTest reports whether a directive is in a test, or in a program for tests.
func (d directive) isTest() bool {
	file, _, _ := strings.Cut(d.place, ":")
	return strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/")
}

// judgeDirectives complains about too many directives outside of tests, and about those for linters that are off.
func judgeDirectives(all []directive, off []string) []string {
	var found, places []string
	for _, d := range all {
		for _, linter := range d.linters {
			if slices.Contains(off, linter) {
				found = append(found, fmt.Sprintf("%s: nolint:%s silences nothing: .golangci.yml switches that linter off",
					d.place, linter))
			}
		}
		if !d.isTest() {
			places = append(places, d.place)
		}
	}
	if len(places) > maxDirectives {
		found = append(found, fmt.Sprintf("%d directives nolint are outside of tests, and %d are the most: write the code so "+
			"that the linter has nothing to say, or, where it is wrong about a whole class, say so with the reason in "+
			".golangci.yml: %s", len(places), maxDirectives, strings.Join(places, ", ")))
	}
	return found
}

// lintersOff returns the linters that the configuration switches off.
func lintersOff(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(root + "/.golangci.yml")
	require.NoError(t, err)
	var config struct {
		Linters struct {
			Disable []string `json:"disable"`
		} `json:"linters"`
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	require.NotEmpty(t, config.Linters.Disable)
	return config.Linters.Disable
}

func TestFewDirectivesSilenceLinters(t *testing.T) {
	s := parseFiles(t, ".go")
	require.Greater(t, len(s.files), 1000, "the repository has that many files")
	all := s.directives()
	require.NotEmpty(t, all, "without any, the limit can be 0")
	assert.Empty(t, judgeDirectives(all, lintersOff(t)))
}

func TestDirectivesBeyondTheLimitAreFound(t *testing.T) {
	code := "package x\n" + strings.Repeat("var _ = 1 //nolint:gosec // a reason\n", maxDirectives)
	few := invented(t, "agent/x", "agent/x/a.go", code).directives()
	assert.Empty(t, judgeDirectives(few, nil))

	many := invented(t, "agent/x", "agent/x/a.go", code+"//nolint:errcheck,wrapcheck // a reason\nvar _ = 1\n").directives()
	found := judgeDirectives(many, []string{"wrapcheck"})
	require.Len(t, found, 2)
	assert.Contains(t, found[0], "agent/x/a.go:12: nolint:wrapcheck silences nothing")
	assert.Contains(t, found[1], "11 directives nolint are outside of tests, and 10 are the most")
	assert.Contains(t, found[1], "agent/x/a.go:2, agent/x/a.go:3")

	for _, file := range []string{"agent/x/a_test.go", "test/x/a.go"} {
		tests := invented(t, "x", file, code+code[len("package x\n"):]).directives()
		assert.Len(t, tests, 2*maxDirectives)
		assert.Empty(t, judgeDirectives(tests, nil), file)
	}
}
