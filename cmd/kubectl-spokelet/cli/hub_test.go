package cli

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/names"
)

// once refuses the first of some requests with a status.
func once(status int, of func(*http.Request) bool) func(*http.Request) int {
	var done atomic.Bool
	return func(r *http.Request) int {
		if !of(r) || done.Swap(true) {
			return 0
		}
		return status
	}
}

// The token of a page lives for minutes. A list whose token has ended begins again: the hub answers.
func TestAListWhoseTokenHasEndedIsReadAgain(t *testing.T) {
	h := shop()
	h.pages = 10
	h.fails = once(http.StatusGone, func(r *http.Request) bool { return r.URL.Query().Get("continue") == "20" })
	got := plays(t, h, "get", "clusters", "-o", "name")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Equal(t, 42, strings.Count(got.out, "cluster/"), "each cluster once")
	assert.NotContains(t, got.errs, "the hub does not answer", "it does")
}

// A person whose token ended could not look. That is not a wrong use.
func TestATokenThatEndedIsNoWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{"check"}, {"why", "cluster", "store-114"}, {"get", "addons", "-A"}, {"check", "--wait", "1m"}, {"check", "--pre"},
		{"approve", "cluster", "store-201"}, {"events", "-A"}, {"diff", "addon", "logs", "-f", file(t, variables("usual", "x", "y"))},
	} {
		h := shop()
		h.fails = func(*http.Request) int { return http.StatusUnauthorized }
		got := played(t.Context(), t, h, func() { t.Error("time does not mend it") }, args...)
		assert.Equal(t, statusBlind, got.status, "%v: %s", args, got.errs)
		assert.Contains(t, got.errs, "the hub does not accept your credential", "%v", args)
		assert.NotContains(t, got.errs, "does not answer", "%v", args)
	}
}

// A managed cluster that answers, and not this person, is not silent.
func TestAClusterThatRefusesThePersonIsNotSilent(t *testing.T) {
	refusing := store()
	refusing.fails = func(*http.Request) int { return http.StatusUnauthorized }
	for _, args := range [][]string{{"why", "addon", "logs", "-n", "store-003"}, {"events", "addon", "logs", "-n", "store-003"}} {
		got := playsBoth(t, reported(shop()), refusing, append(args, "--spoke-context", "store")...)
		assert.Contains(t, got.out, "the managed cluster of context store does not accept your credential  [SPK003]", "%v", args)
		assert.NotContains(t, got.out, "does not answer", "%v", args)
	}
	got := playsBoth(t, shop(), refusing, "logs", "agent", "--spoke-context", "store")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.errs, "the managed cluster does not accept your credential")
}

// "--wait" is used while something starts: a hub that does not answer once is asked again.
func TestAHubThatDoesNotAnswerOnceDoesNotEndAWait(t *testing.T) {
	h := shop()
	h.lists[pathClusters], h.lists[pathAddOns] = h.lists[pathClusters][:40], h.lists[pathAddOns][10:80]
	h.lists[pathRequests] = nil
	h.fails = once(http.StatusServiceUnavailable, func(r *http.Request) bool { return r.URL.Path == pathAddOns })
	got := played(t.Context(), t, h, func() {}, "check", "--wait", "1m")
	assert.Equal(t, statusWell, got.status, got.errs)

	h = shelf()
	h.fails = once(http.StatusServiceUnavailable, func(r *http.Request) bool { return r.URL.Path == pathAddOns })
	got = played(t.Context(), t, h, func() {}, "rollout", "status", "addon", "logs", "--wait", "1m")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "5 clusters failed", "it was asked again")

	h.fails = func(*http.Request) int { return http.StatusServiceUnavailable }
	pauses := 0
	got = played(t.Context(), t, h, func() { pauses++ }, "check", "--wait", "10s")
	assert.Equal(t, statusBlind, got.status, "it never answered")
	assert.Equal(t, 5, pauses)
}

// A watch outlives a restart of the API server, which refuses the first request after that.
func TestAWatchOfEventsOutlivesARestartOfTheHub(t *testing.T) {
	h := shop()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watches atomic.Int32
	h.fails = func(r *http.Request) int {
		if r.URL.Query().Get("watch") == "" {
			return 0
		}
		switch watches.Add(1) {
		case 1: // The API server stops, and ends the watch.
			return http.StatusOK
		case 2:
			return http.StatusServiceUnavailable
		}
		stop()
		return 0
	}
	got := played(ctx, t, h, func() {}, "events", "-A", "-w")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Equal(t, int32(3), watches.Load(), "it watched again: %s", strings.TrimSpace(got.errs))
	assert.Contains(t, got.errs, "the hub does not answer", "that is told")
}

// errorLine is a line of a log.
func errorLine(name string) string {
	return "E1129 11:59:31.000000       1 x.go:20] error-" + name + "\n"
}

// Of a log of an hour, the last errors are wanted, and not the errors of the last lines.
func TestTheTailOfErrorsIsOneOfErrors(t *testing.T) {
	for _, format := range []string{"", "json"} {
		cluster := store()
		for path := range cluster.logs {
			cluster.logs[path] = errorLine("a") + errorLine("b") + errorLine("c") + strings.Repeat("I1129 nothing\n", 9)
		}
		args := []string{"logs", "agent", "--spoke-context", "store", "--errors", "--tail", "2"}
		if format != "" {
			args = append(args, "-o", format)
		}
		got := playsBoth(t, shop(), cluster, args...)
		assert.Equal(t, statusWell, got.status, got.errs)
		assert.NotContains(t, got.out, "error-a")
		assert.Contains(t, got.out, "error-b")
		assert.Contains(t, got.out, "error-c")
		for i, request := range cluster.asked {
			if strings.HasSuffix(request, "/log") {
				assert.NotContains(t, cluster.queries[i], "tailLines", "the API server does not know which lines are errors")
			}
		}
		playsBoth(t, shop(), cluster, "logs", "agent", "--spoke-context", "store", "--tail", "2")
		assert.Contains(t, cluster.queries[len(cluster.queries)-1], "tailLines=2", names.NamespaceAgent)
	}
}
