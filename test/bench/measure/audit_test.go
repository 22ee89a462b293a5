package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// line is a line of an audit log at a second of a minute.
func line(user, verb, resource, stage string, code, second int) string {
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q},`+
		`"responseStatus":{"code":%d},"requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z"}`+"\n",
		stage, verb, user, resource, code, second)
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = log.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, log.Close())
}

func TestAuditCountsByUser(t *testing.T) {
	const done = "ResponseComplete"
	for name, tc := range map[string]struct {
		lines string
		want  Requests
	}{
		"nothing of the user": {line("other", "get", "pods", done, 200, 1), Requests{}},
		"requests of all kinds": {
			line("hub", "create", "works", done, 201, 1) + line("hub", "create", "works", done, 201, 3) +
				line("hub", "get", "works", done, 404, 2) + line("other", "create", "works", done, 201, 4),
			Requests{Count: 3, Last: at(3), Kinds: map[string]int{"create works": 2, "get works": 1}, Watches: map[string]int{}},
		},
		"a lost race": {
			line("hub", "patch", "works", done, 409, 1),
			Requests{Count: 1, Conflicts: 1, Last: at(1), Kinds: map[string]int{"patch works": 1}, Watches: map[string]int{}},
		},
		"leases and watches are aside": {
			line("hub", "update", "leases", done, 200, 1) + line("hub", "watch", "works", "ResponseStarted", 200, 2) +
				line("hub", "watch", "works", done, 200, 2),
			Requests{Kinds: map[string]int{}, Watches: map[string]int{"works": 1}},
		},
		"a panic is a request": {
			line("hub", "get", "works", "Panic", 500, 1),
			Requests{Count: 1, Last: at(1), Kinds: map[string]int{"get works": 1}, Watches: map[string]int{}},
		},
		"a line that is no JSON": {"oops\n" + line("hub", "get", "works", done, 200, 1),
			Requests{Count: 1, Last: at(1), Kinds: map[string]int{"get works": 1}, Watches: map[string]int{}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			appendTo(t, path, tc.lines)
			got, err := NewAudit(path).Of("hub")
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func at(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }

func TestAuditReadsWhatIsAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	audit := NewAudit(path)
	_, err := audit.Of("hub")
	require.Error(t, err, "without a log")

	first := line("hub", "get", "works", "ResponseComplete", 200, 1)
	second := line("hub", "list", "works", "ResponseComplete", 200, 2)
	appendTo(t, path, first+second[:20])
	before, err := audit.Of("hub")
	require.NoError(t, err)
	assert.Equal(t, 1, before.Count, "half a line is not counted")

	appendTo(t, path, second[20:]+first)
	after, err := audit.Of("hub")
	require.NoError(t, err)
	assert.Equal(t, 3, after.Count)
	assert.Equal(t, 1, before.Count, "a state does not change later")
	since := after.Since(before)
	assert.Equal(t, 2, since.Count)
	assert.Equal(t, map[string]int{"get works": 1, "list works": 1}, since.Kinds)
	assert.Equal(t, "2 get works, 1 list works", after.String())
}

func TestKindNamesTheSubresource(t *testing.T) {
	e := event{Verb: "patch"}
	e.Object.Resource, e.Object.Subresource = "works", "status"
	assert.Equal(t, "patch works/status", e.kind())
}
