package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write writes files below a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for file, text := range files {
		path := filepath.Join(folder, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return folder
}

// database returns a database with one vulnerability, in a function of the standard library.
func database(t *testing.T, function string) string {
	t.Helper()
	entry, err := json.Marshal(map[string]any{
		"schema_version": "1.3.1", "id": "GO-2099-0001", "modified": "2099-01-01T00:00:00Z", "published": "2099-01-01T00:00:00Z",
		"summary": "a made-up vulnerability", "details": "It is made up.",
		"affected": []any{map[string]any{
			"package":            map[string]any{"name": "stdlib", "ecosystem": "Go"},
			"ranges":             []any{map[string]any{"type": "SEMVER", "events": []any{map[string]any{"introduced": "0"}}}},
			"ecosystem_specific": map[string]any{"imports": []any{map[string]any{"path": "os", "symbols": []string{function}}}},
		}},
		"database_specific": map[string]any{"url": "https://example.com/GO-2099-0001"},
	})
	require.NoError(t, err)
	return write(t, map[string]string{
		"index/db.json":        `{"modified": "2099-01-01T00:00:00Z"}`,
		"index/modules.json":   `[{"path": "stdlib", "vulns": [{"id": "GO-2099-0001", "modified": "2099-01-01T00:00:00Z"}]}]`,
		"ID/GO-2099-0001.json": string(entry),
	})
}

// check checks a program that calls os.Getpid.
func check(t *testing.T, database string) (string, error) {
	t.Helper()
	source := write(t, map[string]string{
		"go.mod":  "module example.com/tiny\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { println(os.Getpid()) }\n",
	})
	var out bytes.Buffer
	err := run(t.Context(), []string{"--source=" + source, "./..."}, database, &out)
	return out.String(), err
}

func TestAVulnerabilityThatTheProgramCanReachFails(t *testing.T) {
	out, err := check(t, "file://"+database(t, "Getpid"))
	require.Error(t, err)
	assert.Equal(t, 3, code(err))
	assert.Contains(t, out, "GO-2099-0001")
	assert.Contains(t, out, "os.Getpid")
}

func TestAVulnerabilityThatTheProgramDoesNotReachDoesNotFail(t *testing.T) {
	out, err := check(t, "file://"+database(t, "Getppid"))
	require.NoError(t, err, out)
}

func TestADatabaseThatCannotBeReachedHasItsOwnExitCode(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for address, cause := range map[string]string{
		refusing.URL:              "404 Not Found",
		closed.URL:                "connection refused",
		"file://" + t.TempDir():   "no such file",
		"gopher://example.com/db": "unsupported protocol scheme",
	} {
		_, err := check(t, address)
		require.ErrorContains(t, err, "nothing was checked, because the database of vulnerabilities "+address)
		require.ErrorContains(t, err, cause)
		require.ErrorContains(t, err, "GOVULNDB=file:///")
		assert.Equal(t, 4, code(err), address)
	}
}

func TestADatabaseIsReachedOverHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/index/modules.json.gz", r.URL.Path)
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	require.NoError(t, reach(t.Context(), server.URL+"/"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, reach(ctx, server.URL), context.Canceled)
}

func TestOtherFailures(t *testing.T) {
	err := run(t.Context(), nil, publicDatabase, nil)
	require.ErrorContains(t, err, "name the packages")
	assert.Equal(t, 1, code(err))
	require.ErrorContains(t, reach(t.Context(), "::"), "reading the address")
}
