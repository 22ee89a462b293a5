package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// state is what the agent is doing, in a few words, for the health endpoint and the log.
type state struct{ text atomic.Pointer[string] }

// ready is the state in which the agent does its work.
const ready = "serving"

// set tells what the agent is doing now, and returns whether that is news.
func (s *state) set(text string) bool {
	before := s.text.Swap(&text)
	return before == nil || *before != text
}

func (s *state) get() string {
	if text := s.text.Load(); text != nil {
		return *text
	}
	return "starting"
}

// handler answers /healthz with 200 as long as the process lives, and /readyz with 200 while the agent serves; both say
// what it is doing. An agent that waits for a hub or an approval is healthy: restarting it would help nobody.
func (s *state) handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, code int) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintln(w, s.get())
	}
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.get() == ready {
			answer(w, http.StatusOK)
			return
		}
		answer(w, http.StatusServiceUnavailable)
	})
	return mux
}

// serve answers at the address until ctx ends.
func (s *state) serve(ctx context.Context, address string) error {
	if address == off || address == "" {
		return nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health at %s: %w", address, err)
	}
	return nil
}
