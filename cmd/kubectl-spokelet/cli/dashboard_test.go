package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/spokelet/spokelet/manifests"
)

// shows runs dashboard until it has answered the views, and returns what it answered and its exit status.
func shows(t *testing.T, views []string, args ...string) ([]string, int) {
	t.Helper()
	out, says := io.Pipe()
	var errs strings.Builder
	p := &Plugin{
		Streams:     genericiooptions.IOStreams{In: strings.NewReader(""), Out: says, ErrOut: &errs},
		Environment: func(string) string { return "" }, Now: noon, Pause: pause,
	}
	p.Init()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	status := make(chan int, 1)
	go func() {
		status <- p.Run(ctx, append([]string{"dashboard", "--open=false"}, args...))
		_ = says.Close()
	}()
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	require.NoError(t, err, "%s", &errs)
	go func() { _, _ = io.Copy(io.Discard, said) }()
	_, address, found := strings.Cut(strings.TrimSpace(line), " at ")
	require.True(t, found, line)
	require.True(t, strings.HasPrefix(address, "http://127.0.0.1:"), address)
	var answers []string
	for _, view := range views {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+view, nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", view, body)
		answers = append(answers, string(body))
	}
	end()
	return answers, <-status
}

// The page needs what spokelet-view has, and writes nothing.
func TestADashboardNeedsTheRolesAloneAndWritesNothing(t *testing.T) {
	h := governed(t, shop())
	server := httptest.NewServer(h)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig(server.URL)), 0o600))
	answers, status := shows(t, []string{
		"", "addon?name=logs", "cluster?name=store-003&addon=logs", "cluster?name=store-114&addon=metrics", "clusters", "problems",
	}, "--kubeconfig", file)
	assert.Equal(t, statusWell, status)
	assert.Contains(t, answers[0], "3 problems", "as check says")
	assert.Contains(t, answers[2], "manifest unknown")
	for _, answer := range answers {
		assert.NotContains(t, answer, "Not everything could be read")
	}
	have, home := rulesOf(t, "ClusterRole", "spokelet-view", manifests.Hub()), rulesOf(t, "Role", "spokelet-view", manifests.Hub())
	for right := range used(h, false) {
		assert.Contains(t, have, right)
	}
	for right := range used(h, true) {
		assert.Contains(t, home, right)
	}
	lists := 0
	for _, request := range h.asked {
		assert.True(t, strings.HasPrefix(request, "GET "), request)
		if request == "GET "+pathAddOns {
			lists++
		}
	}
	assert.Equal(t, 2, lists, "the fleet is read once, besides one add-on that shows whether versions are converted")
}

func TestADashboardShowsABundle(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "fleet.tgz")
	require.Equal(t, statusWell, plays(t, governed(t, shop()), "bundle", "-f", bundle).status)
	answers, status := shows(t, []string{"", "cluster?name=store-003&addon=logs", "problems?code=SPK052"}, "--from", bundle)
	assert.Equal(t, statusWell, status)
	for _, answer := range answers {
		assert.Contains(t, answer, "This is a bundle")
		assert.Contains(t, answer, "taken at <time datetime=\"2026-11-29T12:00:00Z\">")
		assert.NotContains(t, answer, "page.js", "a bundle does not change")
	}
	assert.Contains(t, answers[0], "3 problems")
	assert.Contains(t, answers[1], "manifest unknown")
}

func TestAWrongUseOfADashboard(t *testing.T) {
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for said, args := range map[string][]string{
		"has no --output": {"-o", "json"}, "address already in use": {"--port", port}, "is not expected": {"now"},
		"invalid argument": {"--port", "70000"}, "none.tgz": {"--from", "none.tgz"},
	} {
		got := plays(t, shop(), append([]string{"dashboard", "--open=false"}, args...)...)
		assert.NotEqual(t, statusWell, got.status, said)
		assert.Contains(t, got.errs, said)
		assert.Empty(t, got.out, "no address is printed")
	}
}

// Other users of the machine see the arguments of programs, and no files of this one.
func TestTheAddressIsNoArgumentOfABrowser(t *testing.T) {
	file, err := redirection("http://127.0.0.1:1/token/")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(filepath.Dir(file)) }()
	assert.NotContains(t, file, "token")
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode())
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(content), "http://127.0.0.1:1/token/")
}
