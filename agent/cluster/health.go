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
)

const (
	// probeTimeout bounds one request of a probe.
	probeTimeout = 10 * time.Second
	// probeAgain is the pause between two probes while the API server is not well.
	probeAgain = 5 * time.Second
	// probeRest is the shortest time between two probes whatever happens.
	probeRest = time.Second
	// versionAgain is the pause after which a version that could not be read is asked for again.
	versionAgain = time.Minute
	// maxProbeAnswer is how much of an answer is read.
	maxProbeAnswer = 64 << 10
	// maxProbeBody is how much of the answer of a failed probe goes into the condition.
	maxProbeBody = 512
)

// health is what the probes so far say about the API server of the spoke.
type health struct {
	// probedAt is the last probe; zero when there was none.
	probedAt time.Time
	// failingSince is the first probe of an unbroken row of failed ones; zero when the last one succeeded.
	failingSince time.Time
	// detail says how the last probe failed, in the words of the contract.
	detail string
	// version is the Kubernetes version that the server named last; empty when unknown.
	version string
}

// well reports whether the last probe succeeded.
func (h health) well() bool { return !h.probedAt.IsZero() && h.failingSince.IsZero() }

// due is the instant of the next probe, zero when nothing asks for one.
func (h health) due(disturbed bool) time.Time {
	switch {
	case h.probedAt.IsZero():
		return time.Unix(0, 0)
	case !h.failingSince.IsZero():
		return h.probedAt.Add(probeAgain)
	case disturbed:
		return h.probedAt.Add(probeRest)
	case h.version == "":
		return h.probedAt.Add(versionAgain)
	}
	return time.Time{}
}

// Health probes the API server of the spoke when Traffic gives reason to, and remembers the answers.
type Health struct {
	// Client sends the probes with the agent's identity; usually the HTTP client of the spoke.
	Client *http.Client
	// Server is the address of the API server, with the path that comes before /livez if there is one.
	Server *url.URL
	// Traffic says when to look.
	Traffic *Traffic

	mu        sync.Mutex
	last      health
	disturbed bool
}

// observe returns what is known at now, after a probe if one is due, and the instant of the next probe, zero for none.
func (h *Health) observe(ctx context.Context, now time.Time) (health, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disturbed = h.Traffic.take() || h.disturbed
	if due := h.last.due(h.disturbed); due.IsZero() || due.After(now) {
		return h.last, due
	}
	h.disturbed = false
	h.last = h.probe(asProbe(ctx), now)
	return h.last, h.last.due(false)
}

// probe asks once: /livez, or /healthz where /livez is not for us, and the version when the answer is good.
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

// get returns the status code and the beginning of the answer; without an answer the code is zero.
func (h *Health) get(ctx context.Context, path string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Server.JoinPath(path).String(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	answer, err := h.Client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxProbeAnswer))
	return answer.StatusCode, body, errors.Join(err, answer.Body.Close())
}

// detail says how a probe failed, as the contract words it: the status code, and the answer or the error.
func detail(code int, body []byte, err error) string {
	text := strings.TrimSpace(string(body))
	if text == "" && err != nil {
		text = err.Error()
	}
	if len(text) > maxProbeBody {
		text = strings.ToValidUTF8(text[:maxProbeBody], "") + "..."
	}
	return fmt.Sprintf("status code: %d, %s", code, text)
}
