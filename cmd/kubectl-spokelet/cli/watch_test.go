package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// played runs a command line whose pauses take no time but move the clock, and calls between at each.
func played(ctx context.Context, t *testing.T, h *hub, between func(), args ...string) outcome {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig(server.URL)), 0o600))
	var out, errs bytes.Buffer
	now := noon()
	p := &Plugin{
		Streams:     genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs},
		Environment: func(string) string { return "" },
		Now:         func() time.Time { return now },
		Pause: func(ctx context.Context, d time.Duration) error {
			now = now.Add(d)
			between()
			return ctx.Err()
		},
	}
	p.Init()
	status := p.Run(ctx, append([]string{"--kubeconfig", file}, args...))
	return outcome{out: out.String(), errs: errs.String(), status: status}
}

func TestWhoWaitsIsAnsweredWhenAllIsWellOrTimeRanOut(t *testing.T) {
	for name, tc := range map[string]struct {
		wellAfter int
		status    int
		pauses    int
	}{
		"all is well after three looks": {wellAfter: 3, status: statusWell, pauses: 3},
		"it does not become well":       {wellAfter: 1000, status: statusOutOfTime, pauses: 5},
	} {
		t.Run(name, func(t *testing.T) {
			h := shop()
			pauses := 0
			got := played(t.Context(), t, h, func() {
				if pauses++; pauses == tc.wellAfter {
					for path := range h.lists {
						h.lists[path] = nil
					}
				}
			}, "check", "--wait", "10s")
			assert.Equal(t, tc.status, got.status, got.errs)
			assert.Equal(t, tc.pauses, pauses)
			assert.Equal(t, 1, strings.Count(got.out, "hub http"), "only the last look is an answer")
		})
	}
}

func TestAWatchAnswersAgainUntilItsEnd(t *testing.T) {
	for said, args := range map[string][]string{
		"hub (42 clusters)": {"tree", "-w"}, "3 problems": {"check", "-w"}, "store-114": {"get", "clusters", "--watch"},
	} {
		ctx, end := context.WithCancel(t.Context())
		h := shop()
		pauses := 0
		got := played(ctx, t, h, func() {
			switch pauses++; pauses {
			case 1:
				h.forbidden = map[string]bool{"managedclusters": true, "managedclusteraddons": true}
			case 2:
				h.forbidden = nil
			case 3:
				end()
			}
		}, args...)
		assert.Equal(t, statusWell, got.status, "who ends a watch has seen its problems: %s", got.errs)
		assert.Equal(t, 2, strings.Count(got.out, said), "%s", got.out)
		assert.Contains(t, got.errs, "nothing could be read", "a look that fails is told, and the watch goes on")
	}
	got := played(t.Context(), t, shop(), func() { t.Error("a wrong use is not asked again") }, "tree", "-w", "-o", "xml")
	assert.Equal(t, statusUse, got.status)
}

func TestProgressIsToldWhenReadingTakesLongAndGoesAway(t *testing.T) {
	var out bytes.Buffer
	now := noon()
	p := progress{out: &out, now: func() time.Time { return now }, since: now}
	p.told("managedclusters", 500)
	p.clear()
	assert.Empty(t, out.String(), "who is answered at once is told nothing")
	now = now.Add(quiet)
	p.told("managedclusteraddons", 500)
	assert.Equal(t, "\r\x1b[Kreading managedclusteraddons, 1000 objects so far", out.String())
	out.Reset()
	p.clear()
	p.clear()
	assert.Equal(t, "\r\x1b[K", out.String())
	(&progress{}).told("managedclusters", 1)
}

// What happened before a watch began is shown in each format.
func TestAWatchInJSONHasWhatHappenedBefore(t *testing.T) {
	for _, format := range []string{"", "json", "yaml", "name"} {
		h := shop()
		ctx, stop := context.WithCancel(t.Context())
		h.watched = stop
		args := []string{"events", "-A", "-w"}
		if format != "" {
			args = append(args, "-o", format)
		}
		got := playsUntil(ctx, t, h, args...)
		stop()
		assert.Equal(t, statusWell, got.status, got.errs)
		assert.Contains(t, got.out, "store-114", "format %q", format)
	}
}
