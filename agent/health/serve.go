package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/probe"
)

// off is the address of an endpoint that is not served.
const off = "0"

// Handler returns the endpoints.
func (s *State) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		probe.Respond(w, r, true, s.snapshot().lines()...)
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		now := s.snapshot()
		lines := now.lines()
		if probe.Verbose(r) || !probe.Local(r) {
			lines = append(now.checks(), s.notes()...)
		}
		probe.Respond(w, r, now.ready, lines...)
	})
	mux.HandleFunc("/readyz/hub", func(w http.ResponseWriter, r *http.Request) {
		now := s.snapshot()
		switch {
		case !now.connected:
			probe.Respond(w, r, false, probe.Line{Text: "there is no credential for a hub in use: " + now.text})
		case now.outage != "":
			probe.Respond(w, r, false, probe.Line{Text: now.outage})
		default:
			probe.Respond(w, r, true, probe.Line{Text: "ok"})
		}
	})
	return mux
}

// Serve serves the endpoints over http until ctx ends; the address "0" or none serves nothing.
func (s *State) Serve(ctx context.Context, address string) error {
	if address == off || address == "" {
		return nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	return s.serve(ctx, listener)
}

// TLSOptions is how the endpoints are served over https.
type TLSOptions struct {
	// Address, as --listen gives it, counts more than Port, as --health-port gives it; "0" and 0 are off.
	Address string
	Port    int
	// TLS restricts versions and cipher suites.
	TLS command.TLS
}

// ServeTLS serves the endpoints over https until ctx ends.
func (s *State) ServeTLS(ctx context.Context, options TLSOptions, now clock.PassiveClock) error {
	address, flag := options.Address, "--listen"
	if address == "" {
		address, flag = ":"+strconv.Itoa(options.Port), "--health-port"
	}
	if address == off || address == ":0" {
		return nil
	}
	config, err := serverConfig(options.TLS, now)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return s.serve(ctx, tls.NewListener(listener, config))
}

func (s *State) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: log.New(lineWriter{logr.FromContextOrDiscard(ctx)}, "", 0),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health at %s: %w", listener.Addr(), err)
	}
	return nil
}

// lineWriter logs the mistakes of clients, each as a detail.
type lineWriter struct{ logger logr.Logger }

// Write implements io.Writer.
func (w lineWriter) Write(line []byte) (int, error) {
	w.logger.V(1).Info("serving health", "problem", string(line))
	return len(line), nil
}
