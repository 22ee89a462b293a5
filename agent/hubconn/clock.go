package hubconn

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// Clock is the clock of the hub: the local clock, corrected by the Date header of the responses, but for those of
// something before the hub that cannot reach it. The hub issues and
// verifies certificates by its own clock, so their validity is judged by it.
type Clock struct {
	local clock.PassiveClock

	mu    sync.Mutex
	known bool
	ahead time.Duration
}

// NewClock returns a Clock that agrees with the local one until the hub has responded.
func NewClock(local clock.PassiveClock) *Clock { return &Clock{local: local} }

// Ahead returns by how much the local clock is ahead of that of the hub, negative where it is behind; zero as long as
// that is unknown.
func (c *Clock) Ahead() time.Duration {
	ahead, _ := c.Reading()
	return ahead
}

// Reading returns Ahead and IsKnown of one instant.
func (c *Clock) Reading() (ahead time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}

// IsKnown reports whether the time at the hub is known.
func (c *Clock) IsKnown() bool {
	_, known := c.Reading()
	return known
}

// Now returns the time by the clock of the hub.
func (c *Clock) Now() time.Time { return c.local.Now().Add(-c.Ahead()) }

// Since returns how long ago an instant was by the clock of the hub.
func (c *Clock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// Query asks the hub for the time if the stored certificate looks expired and the time at the hub is unknown: the local
// clock may be wrong, and without a bootstrap kubeconfig there is no other way to join. wrap, unless nil, is put around
// the transport. A hub that does not respond changes nothing.
func (c *Clock) Query(ctx context.Context, server issue.HubServer, pair issue.Pair, wrap transport.WrapperFunc) {
	if c.IsKnown() || !issue.IsExpired(pair, c.local.Now()) {
		return
	}
	logger := log.FromContext(ctx).WithValues("hub", server.Server)
	connection, err := Connect(server, pair, Observers{Clock: c})
	if err != nil {
		logger.Error(err, "the stored certificate looks expired, and the hub cannot be asked for the time")
		return
	}
	defer connection.Close()
	client, err := rest.HTTPClientFor(connection.RESTConfig(wrap))
	if err == nil {
		_, err = get(ctx, client, server.Server+"/livez")
	}
	logger.Info("the stored certificate looks expired, asked the hub for the time",
		"known", c.IsKnown(), "ahead", c.Ahead().String(), "error", err)
}

// Wrap adds the measurement to a transport, as rest.Config.Wrap wants it.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
		sent := c.local.Now()
		response, err := next.RoundTrip(request)
		if err == nil && !fromProxy(response.StatusCode) {
			c.observe(response.Header.Get("Date"), sent, c.local.Now())
		}
		return response, err
	})
}

// observe takes the date of a response, and the instants at which the request was sent and the response received.
func (c *Clock) observe(date string, sent, received time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // some proxies remove the header
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.ahead = true, measureAhead(at, sent, received, c.ahead)
}

// measureAhead returns by how much the local clock is ahead of one that showed date at some instant between sent and
// received. A date counts in whole seconds. The former result stays if it agrees with the measurement, else zero.
func measureAhead(date, sent, received time.Time, before time.Duration) time.Duration {
	least, most := sent.Sub(date.Add(time.Second)), received.Sub(date)
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
