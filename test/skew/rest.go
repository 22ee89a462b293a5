package skew

import (
	"context"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
)

const (
	// quiet is how long nothing may be written, and settling how long it may take until that begins.
	quiet, settling = 20 * time.Second, 90 * time.Second
)

// rest waits for a span in which no program writes anything, but heartbeats and what belongs to certificates.
func (w *world) rest(ctx context.Context) error {
	users, err := w.fleet.Users(ctx)
	if err != nil {
		return err
	}
	return measure.Rest(ctx, quiet, settling, func() (map[string]int, error) { return w.audits.Written(users) })
}
