package measure

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// lookEvery is how often Rest looks.
const lookEvery = 250 * time.Millisecond

// Writes returns the requests that change something, by verb and resource, without those of certificates, which are
// replaced while nothing else happens, and without Events, which tell of those.
func (r Requests) Writes() map[string]int {
	found := map[string]int{}
	for kind, n := range r.Kinds {
		verb, resource, _ := strings.Cut(kind, " ")
		resource, _, _ = strings.Cut(resource, "/")
		switch {
		case verb == "get" || verb == "list" || verb == "watch":
		case resource == "certificatesigningrequests" || resource == "secrets" || resource == "events":
		case strings.HasSuffix(resource, "reviews"): // they are questions
		default:
			found[kind] = n
		}
	}
	return found
}

// Rest waits for a span in which counts of writes do not grow. If that does not begin within a while, the error says
// what was written.
func Rest(ctx context.Context, quiet, within time.Duration, written func() (map[string]int, error)) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	before, err := written()
	if err != nil {
		return err
	}
	began := time.Now()
	for last, since := before, began; time.Since(since) < quiet; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		now, err := written()
		if err != nil {
			return err
		}
		if len(difference(now, last)) > 0 {
			last, since = now, time.Now()
		}
		if since.Sub(began) > within {
			return fmt.Errorf("somebody writes all the time: %v", difference(now, before))
		}
	}
	return nil
}
