package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
)

// Options say what a page shows.
type Options struct {
	// Open returns a reader of the fleet. It is called before each read.
	Open func() (*fleet.Reader, error)
	// Bundle reports that the fleet is that of a bundle, which does not change.
	Bundle bool
	// Now returns the time by which is judged, and Clock that of this machine.
	Now, Clock func() time.Time
	// Every is the least time between two reads of the fleet.
	Every time.Duration
}

// Page serves a fleet.
type Page struct {
	Options

	token  string
	keeper *keeper
	// slots limit how many requests are answered at a time.
	slots chan struct{}
}

const (
	// atOnce is how many requests are answered at a time.
	atOnce = 8
	// longest is how long one read of a fleet, or of the details of a cluster, may take.
	longest = 2 * time.Minute
	// ending is how long answers may take that are under way when the page ends.
	ending = 2 * time.Second
)

// New returns a page. Until Serve, or Keep, nothing reads the fleet.
func New(o Options) *Page {
	p := &Page{Options: o, token: newToken(), slots: make(chan struct{}, atOnce)}
	p.keeper = newKeeper(p.take)
	p.keeper.now, p.keeper.every, p.keeper.still = o.Clock, o.Every, o.Bundle
	return p
}

// take reads the fleet.
func (p *Page) take(ctx context.Context) (*facts.Snapshot, error) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	r, err := p.Open()
	if err != nil {
		return nil, err
	}
	return facts.Take(ctx, r, p.Now())
}

// Keep reads the fleet when a request wants it, until the context ends.
func (p *Page) Keep(ctx context.Context) { p.keeper.keep(ctx) }

// Path is the path of the page, which begins with its token.
func (p *Page) Path() string { return "/" + p.token + "/" }

// Listen listens on the loopback interface: of IPv4, or of IPv6 where there is no other. Port zero is a free one.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		return l, nil
	}
	if !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) {
		return nil, fmt.Errorf("listening on the loopback interface: %w", err)
	}
	six, other := config.Listen(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	if other != nil {
		return nil, fmt.Errorf("listening on the loopback interface: %w", err)
	}
	return six, nil
}

// Serve serves the page until the context ends.
func (p *Page) Serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		p.Keep(ctx)
	}()
	server := &http.Server{
		Handler: p.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: longest + 10*time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		last, end := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer end()
		if server.Shutdown(last) != nil {
			_ = server.Close() // What is under way then has been waited for.
		}
		err = <-served
	}
	stop()
	<-kept
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the page: %w", err)
}

//go:embed page.css page.js icon.svg
var files embed.FS

// Handler returns what answers requests.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, view := range map[string]func(context.Context, kept, *http.Request) (view, error){
		"/{$}": p.fleet, "/addon": p.addOn, "/cluster": p.cluster, "/clusters": p.clusters, "/problems": p.problems,
	} {
		mux.Handle(path, p.answer(view))
	}
	for name, kind := range map[string]string{ // What a machine says of the ends of names may be anything.
		"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			http.ServeFileFS(w, r, files, name)
		})
	}
	return guard(p.token, mux)
}

// answer returns what answers with a view.
func (p *Page) answer(arrange func(context.Context, kept, *http.Request) (view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return
		}
		last, err := p.keeper.get(ctx)
		if err != nil {
			return // The client is gone.
		}
		v := view{Template: "silent", Title: "The hub does not answer", Status: http.StatusServiceUnavailable}
		if last.Snapshot != nil {
			detailed, stop := context.WithTimeout(ctx, longest)
			defer stop()
			if v, err = arrange(detailed, last, r); err != nil {
				last.err = errors.Join(last.err, err)
			}
		}
		p.write(w, v, last)
	})
}
