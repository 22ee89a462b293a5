package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// probeTimeout bounds one request of a probe.
	probeTimeout = 10 * time.Second
	// probeInterval is the time between two probes while the API server is not healthy.
	probeInterval = 5 * time.Second
	// minProbeInterval is the shortest time between two probes.
	minProbeInterval = time.Second
	// versionRetry is the time after which the version is read again if it could not be read.
	versionRetry = time.Minute
	// maxProbeAnswer is the number of bytes of an answer that are read.
	maxProbeAnswer = 64 << 10
	// maxProbeBody is the number of bytes of the answer to a failed probe that the condition quotes.
	maxProbeBody = 512
)

// health is the result of the probes of the API server of the spoke.
type health struct {
	// probedAt is the last probe; zero when there was none.
	probedAt time.Time
	// failingSince is the time of the first of the probes that failed in a row; zero when the last one succeeded.
	failingSince time.Time
	// detail is the failure of the last probe, as OCM words it.
	detail string
	// version is the Kubernetes version that the server last returned; empty when unknown.
	version string
}

// healthy reports whether the last probe succeeded.
func (h health) healthy() bool { return !h.probedAt.IsZero() && h.failingSince.IsZero() }

// due returns the time of the next probe; zero when none is needed.
func (h health) due(suspected bool, every time.Duration) time.Time {
	switch {
	case h.probedAt.IsZero():
		return time.Unix(0, 0)
	case !h.failingSince.IsZero():
		return h.probedAt.Add(probeInterval)
	case suspected:
		return h.probedAt.Add(minProbeInterval)
	case h.version == "":
		return h.probedAt.Add(versionRetry)
	case every > 0:
		return h.probedAt.Add(every)
	}
	return time.Time{}
}

// Health probes the API server of the spoke when Failures has seen a sign of failure, and keeps the results.
type Health struct {
	// Client sends the probes with the identity of the agent; usually the HTTP client of the spoke.
	Client *http.Client
	// Server is the address of the API server, with the path before /livez if there is one.
	Server *url.URL
	// Failures observes the requests to the API server.
	Failures *FailureDetector
	// Every is the time between two probes of a server that looks healthy; zero means none.
	Every time.Duration

	mu        sync.Mutex
	last      health
	suspected bool
}

// observe returns the health at now, after a probe if one is due, and the time of the next probe, zero for none.
func (h *Health) observe(ctx context.Context, now time.Time) (health, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspected = h.Failures.take() || h.suspected
	if due := h.last.due(h.suspected, h.Every); due.IsZero() || due.After(now) {
		return h.last, due
	}
	h.suspected = false
	h.last = h.probe(asProbe(ctx), now)
	return h.last, h.last.due(false, h.Every)
}

// probe requests /livez, or /healthz where /livez is forbidden or missing, and the version if the answer is good.
func (h *Health) probe(ctx context.Context, now time.Time) health {
	next := health{probedAt: now, version: h.last.version}
	code, body, err := h.get(ctx, "/livez")
	if code == http.StatusNotFound || code == http.StatusForbidden {
		code, body, err = h.get(ctx, "/healthz")
	}
	if code != http.StatusOK {
		next.failingSince, next.detail = h.last.failingSince, detail(code, body, err)
		if next.failingSince.IsZero() {
			next.failingSince = now
		}
		return next
	}
	var info version.Info
	if code, body, _ := h.get(ctx, "/version"); code == http.StatusOK && json.Unmarshal(body, &info) == nil {
		next.version = info.GitVersion
	}
	return next
}

// get returns the status code and the beginning of the answer; the code is zero if there was no answer.
func (h *Health) get(ctx context.Context, path string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Server.JoinPath(path).String(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("requesting %s: %w", path, err)
	}
	answer, err := h.Client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxProbeAnswer))
	return answer.StatusCode, body, errors.Join(err, answer.Body.Close())
}

// detail describes the failure of a probe, as OCM words it: the status code, and the answer or the error.
func detail(code int, body []byte, err error) string {
	text := strings.TrimSpace(string(body))
	if text == "" && err != nil {
		text = err.Error()
	}
	text = message.Cut(text, maxProbeBody)
	if code == http.StatusUnauthorized {
		text += "; the credential of the agent is not accepted: it expired, was revoked, or is one of another cluster"
	}
	return fmt.Sprintf("status code: %d, %s", code, text)
}
