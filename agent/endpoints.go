package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// state is what the agent is doing, in a few words, for the health endpoint and the log.
type state struct {
	mu   sync.Mutex
	text string
	// able is set where the agent is not serving, and does all that it can do now.
	able bool
	// hub is how the hub answers; nil while the agent has no credential for one.
	hub *reach
}

// ready is the state in which the agent does its work.
const ready = "serving"

// set tells what the agent is doing now, and returns whether that is news.
func (s *state) set(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.text
	s.text, s.able = text, false
	return before != text
}

// standBy tells that the agent does all that it can do now, though that is not everything or even nothing: another one
// leads, or it looks after works by their copies until the hub is back. It returns whether that is news.
func (s *state) standBy(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.text
	s.text, s.able = text, true
	return before != text
}

// follow makes hub the one that the agent speaks of from now on; nil means none.
func (s *state) follow(hub *reach) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = hub
}

// health is the state at one moment.
type health struct {
	// text is what the agent is doing, ready whether it does what it can or has nothing to do.
	text  string
	ready bool
	// connected reports whether there is a hub to ask, silence says that it does not answer; empty when it does.
	connected bool
	silence   string
}

func (s *state) look() health {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := health{text: s.text, ready: s.able || s.text == ready, connected: s.hub != nil}
	if found.text == "" {
		found.text = "starting"
	}
	if s.hub != nil {
		found.silence = s.hub.silence()
	}
	return found
}

// handler answers /healthz with 200 as long as the process lives, and /readyz with 200 while the agent serves or stands
// by; both say what it is doing, and that the hub does not answer where that is so. An agent that waits for an approval
// is healthy: restarting it would help nobody. One whose hub does not answer is ready, too, for what needs no hub;
// /readyz/hub alone fails then.
func (s *state) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, true, s.look().lines()...)
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		found := s.look()
		lines := found.lines()
		if r.URL.Query().Has("verbose") {
			lines = found.checks()
		}
		answer(w, found.ready, lines...)
	})
	mux.HandleFunc("/readyz/hub", func(w http.ResponseWriter, _ *http.Request) {
		found := s.look()
		switch {
		case !found.connected:
			answer(w, false, "there is no credential for a hub in use: "+found.text)
		case found.silence != "":
			answer(w, false, found.silence)
		default:
			answer(w, true, "ok")
		}
	})
	return mux
}

// lines are what the agent is doing, and below it what is wrong with the hub.
func (h health) lines() []string {
	if h.silence == "" {
		return []string{h.text}
	}
	return []string{h.text, h.silence}
}

// checks are the same with a mark for each.
func (h health) checks() []string {
	mark := func(good bool, name, text string) string {
		if good {
			return "[+]" + name + " " + text
		}
		return "[-]" + name + " " + text
	}
	lines := []string{mark(h.ready, "agent", h.text)}
	switch {
	case h.silence != "":
		lines = append(lines, mark(false, "hub", h.silence))
	case h.connected:
		lines = append(lines, mark(true, "hub", "ok"))
	}
	return lines
}

func answer(w http.ResponseWriter, good bool, lines ...string) {
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(w, line)
	}
}

// serve answers over http at the address until ctx ends.
func (s *state) serve(ctx context.Context, address string) error {
	if address == off || address == "" {
		return nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	return s.answer(ctx, listener)
}

// serveTLS answers over https as the configuration says, until ctx ends.
func (s *state) serveTLS(ctx context.Context, config *Config, now clock.PassiveClock) error {
	address, flag := config.Listen, "--listen"
	if address == "" {
		address, flag = ":"+strconv.Itoa(config.HealthPort), "--health-port"
	}
	if address == off || address == ":0" {
		return nil
	}
	served, err := config.serverTLS(now)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return s.answer(ctx, tls.NewListener(listener, served))
}

func (s *state) answer(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: quietLog(ctx),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health at %s: %w", listener.Addr(), err)
	}
	return nil
}
