package klusterlet_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/suite"
)

// TestReadinessNamesAHubThatIsCutOffAndTheLogSaysItOnce cuts the way to the hub of an agent that serves, with works and
// add-ons, and mends it.
func TestReadinessNamesAHubThatIsCutOffAndTheLogSaysItOnce(t *testing.T) {
	k := newKlusterlet(t, "cut", true)
	p := k.run(k.both())
	k.admit()
	k.registerAddon("helper")
	k.work("one")
	k.awaitApplied("one")
	p.awaitReadiness("serving")
	k.atRest(p)
	code, body, err := p.get(t.Context(), "/readyz/hub")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code, body)

	before := p.process.Log()
	k.hub.Cut()
	cut := time.Now()
	silence := "hub " + k.hub.Host + " does not answer since "
	p.awaitReadiness(silence)
	code, body = p.readiness()
	assert.Equal(t, http.StatusOK, code, "it goes on with what needs no hub")
	began, _, found := strings.Cut(strings.SplitAfter(body, silence)[1], ": ")
	require.True(t, found, body)
	since, err := time.Parse(time.RFC3339, began)
	require.NoError(t, err)
	assert.WithinRange(t, since, cut.Add(-time.Second), time.Now())
	code, body, err = p.get(t.Context(), "/readyz/hub")
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, body, silence)
	code, body, err = p.get(t.Context(), "/readyz?verbose")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "[-]hub "+silence)

	// It still repairs what a user changes on the cluster, and goes on trying to reach the hub.
	k.removed("one")
	k.eventually(func() bool { return time.Since(cut) > 30*time.Second }, "many tries")
	told := newLines(before, p.process.Log())
	require.Len(t, told, 1, "one cause is one line:\n%s", strings.Join(told, "\n"))
	assert.Contains(t, told[0], "the hub does not answer")
	named, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(strings.Fields(told[0])[0], "time="))
	require.NoError(t, err)
	assert.WithinRange(t, named, since, since.Add(10*time.Second), "it is named within ten seconds of the first failure")

	before = p.process.Log()
	k.hub.Mend()
	k.eventually(func() bool {
		code, _, err := p.get(t.Context(), "/readyz/hub")
		return err == nil && code == http.StatusOK
	},
		"the hub answers again")
	k.work("two")
	k.awaitApplied("two")
	told = newLines(before, p.process.Log())
	require.NotEmpty(t, told)
	assert.Contains(t, told[0], "the hub answers again")
	for _, line := range told[1:] {
		assert.NotContains(t, line, "the hub")
		assert.NotContains(t, line, "level=ERROR")
	}
	_, body = p.readiness()
	assert.Equal(t, "serving", body)
}

// newLines returns the lines that a log has more than before, except that the agent repaired something.
func newLines(before, now string) []string {
	lines := strings.FieldsFunc(strings.TrimPrefix(now, before), func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, `msg="repaired what was changed on the spoke"`)
	})
}

// atRest waits until the log of a pod has not grown for a moment.
func (k *klusterlet) atRest(p *pod) {
	k.t.Helper()
	suite.Quiet(k.t, 2*time.Second, p.process.Log)
}
