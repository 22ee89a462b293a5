package mutate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAReportIsCountedByOutcome(t *testing.T) {
	result, err := parse("csr", []byte(`{"files":[{"file_name":"csr/a.go","mutations":[
		{"type":"CONDITIONALS_NEGATION","status":"KILLED","line":1,"column":2},
		{"type":"CONDITIONALS_NEGATION","status":"TIMED OUT","line":3,"column":2},
		{"type":"ARITHMETIC_BASE","status":"LIVED","line":4,"column":5},
		{"type":"INVERT_LOGICAL","status":"NOT COVERED","line":6,"column":7},
		{"type":"INVERT_LOGICAL","status":"NOT VIABLE","line":8,"column":7}]}]}`))
	require.NoError(t, err)
	assert.Equal(t, Result{
		Package: "csr", Noticed: 2, All: 4,
		Survivors: []string{"csr/a.go:4:5 arithmetic base, lived", "csr/a.go:6:7 invert logical, not covered"},
	}, result)
	assert.InDelta(t, 50, result.Share(), 0.001)
	assert.InDelta(t, 100, Result{}.Share(), 0.001, "nothing to change is nothing missed")
}

func TestAReportThatIsNotUnderstoodIsAnError(t *testing.T) {
	_, err := parse("csr", []byte(`{"files":[{"mutations":[{"status":"ESCAPED"}]}]}`))
	require.ErrorContains(t, err, `unknown outcome "ESCAPED"`)
	_, err = parse("csr", []byte(`no report`))
	require.ErrorContains(t, err, "parsing the report")
}

func TestFilesThatImportContextAreNotChanged(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"act.go": "package x\nimport \"context\"", "decide.go": "package x\nimport \"time\"", "a_test.go": "package x\nimport \"context\"",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	impure, err := impureFiles(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"act.go"}, impure)
}
