package agent

import (
	"context"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

// hubTime knows by how much the clock of the agent is ahead of that of the hub, from the header Date of the hub's
// answers. Certificates are good by the clock of the hub, so their lives are judged by it.
type hubTime struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	known bool
	ahead time.Duration
}

// Ahead returns by how much the clock of the agent is ahead of that of the hub, negative where it is behind; zero while
// nothing tells.
func (h *hubTime) Ahead() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ahead
}

// isKnown reports whether the hub has told the time.
func (h *hubTime) isKnown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known
}

// Now returns the time by the clock of the hub.
func (h *hubTime) Now() time.Time { return h.clock.Now().Add(-h.Ahead()) }

// Since returns how long ago an instant was by the clock of the hub.
func (h *hubTime) Since(at time.Time) time.Duration { return h.Now().Sub(at) }

// askTime asks the hub for the time where the stored certificate looks expired and the hub has not told the time yet.
// It may be our clock that is wrong, and without a bootstrap kubeconfig there is no other way in. A hub that does not
// answer says nothing.
func (a *agent) askTime(ctx context.Context, stored *corev1.Secret, server csr.HubServer) {
	pair := csr.PairOf(stored)
	if a.hubTime.isKnown() || !csr.IsExpired(pair, a.clock.Now()) {
		return
	}
	logger := ctrl.LoggerFrom(ctx).WithValues("hub", server.Server)
	connection, err := connectHub(join.Credential{Server: server, Pair: pair},
		&answers{clock: a.clock, time: a.hubTime})
	if err != nil {
		logger.Error(err, "the stored certificate looks expired, and the hub cannot be asked for the time")
		return
	}
	defer connection.close()
	hub, err := rest.HTTPClientFor(connection.config(0, 0, a.config.WrapTransport))
	if err == nil {
		_, err = (&probe{hub: hub, address: server.Server + "/livez"}).try(ctx)
	}
	logger.Info("the stored certificate looks expired, asked the hub for the time",
		"known", a.hubTime.isKnown(), "ahead", a.hubTime.Ahead().String(), "error", err)
}

// wrap puts the watch around a transport, as rest.Config.Wrap wants it.
func (h *hubTime) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		sent := h.clock.Now()
		answer, err := next.RoundTrip(request)
		if err == nil {
			h.note(answer.Header.Get("Date"), sent, h.clock.Now())
		}
		return answer, err
	})
}

// note takes the date of an answer to a request that was sent and answered at these instants.
func (h *hubTime) note(date string, sent, got time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // not every proxy in between leaves it there
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.ahead = true, measureAhead(at, sent, got, h.ahead)
}

// measureAhead returns by how much our clock is ahead of another one that showed a date, which counts in whole seconds,
// at some instant between two of ours. What was measured before stays while it agrees with that, and so does that the
// clocks agree.
func measureAhead(date, sent, got time.Time, before time.Duration) time.Duration {
	least, most := sent.Sub(date.Add(time.Second)), got.Sub(date)
	switch {
	case least <= before && before <= most:
		return before
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}
