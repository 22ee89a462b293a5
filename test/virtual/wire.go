package virtual

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spokelet/spokelet/test/apiserver"
	"github.com/spokelet/spokelet/test/proxy"
)

// errCut holds what a client gets whose way to an API server is cut.
var errCut = errors.New("the network is down")

// link is the way of one program to one API server.
type link struct {
	name string

	mu sync.Mutex
	to http.RoundTripper
	// liar is nil until lists are remembered.
	liar  *proxy.Liar
	lying bool
	// down is closed while requests fail and is replaced when they no longer do; off tells which.
	off  bool
	down chan struct{}
	// wrote counts requests that write, but for leases and Events, by what they asked for, and last is what the last of
	// them said.
	wrote map[string]int
	last  map[string]string
	// same counts the requests of one instant by what they ask for. hot is told about one that comes again and again.
	instant time.Time
	same    map[string]int
	hot     func(request string)
	// halt ends the program that sends one; nil lets it wait for a second, which it may do with a lock that others need.
	halt func()
	// faults are what some requests suffer, see faults.go.
	faults []*fault
}

// mostAtOnce is how often a program may send the same request at one instant.
const mostAtOnce = 100

func newLink(name string, to http.RoundTripper, hot func(string)) *link {
	return &link{
		name: name, to: to, down: make(chan struct{}), hot: hot, wrote: map[string]int{}, last: map[string]string{},
	}
}

// loops reports whether a program sends a request again and again. In a bubble, it would do so for ever.
func (l *link) loops(r *http.Request) bool {
	if now := time.Now(); !now.Equal(l.instant) {
		l.instant, l.same = now, map[string]int{}
	}
	l.same[r.Method+" "+r.URL.Path]++
	return l.same[r.Method+" "+r.URL.Path] > mostAtOnce
}

// use changes the identity of the program.
func (l *link) use(to http.RoundTripper) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// cut lets all requests fail, those under way too, until it is mended.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.off {
		l.off = true
		close(l.down)
	}
}

// mend ends what cut began.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off {
		l.off, l.down = false, make(chan struct{})
	}
}

// remember keeps lists from now on, to answer with them later.
func (l *link) remember() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.liar == nil {
		l.liar = proxy.NewLiar()
	}
}

// lie lets answers be lies until it is honest again. What is under way fails, so that no watch shows the truth.
func (l *link) lie(lies proxy.Lies) {
	lies.RetryAfter = 0 // a client waits that long with its locks, see router
	l.remember()
	l.mu.Lock()
	l.liar.Lie(lies)
	l.lying = true
	l.mu.Unlock()
	l.cut()
	l.mend()
}

// honest ends what lie began, and reports whether there were lies.
func (l *link) honest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.lying
	if was {
		l.liar.Honest()
		l.lying = false
	}
	return was
}

// told counts the lies.
func (l *link) told() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.liar == nil {
		return nil
	}
	return l.liar.Told()
}

// written counts the requests that wrote, but for leases and Events, by what they asked for.
func (l *link) written() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.wrote)
}

// saying adds to requests what the last of each said.
func (l *link) saying(requests []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := slices.Clone(requests)
	for i, request := range said {
		said[i] += " " + l.last[request]
	}
	return said
}

// more returns the requests that were written more often than before.
func (l *link) more(before map[string]int) []string {
	var more []string
	for request, count := range l.written() {
		if count > before[request] {
			more = append(more, request)
		}
	}
	slices.Sort(more)
	return more
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	to, off, down, loops := l.faulty(l.to), l.off, l.down, l.loops(r)
	if isWrite(r) {
		l.wrote[r.Method+" "+r.URL.Path]++
		l.last[r.Method+" "+r.URL.Path] = bodyOf(r)
	}
	if l.liar != nil {
		to = l.liar.Over(to, anyProgram)
	}
	l.mu.Unlock()
	if loops {
		l.hot(r.Method + " " + r.URL.Path)
		if l.halt != nil {
			l.halt()
			return nil, errCut
		}
		time.Sleep(time.Second)
	}
	if off {
		return nil, errCut
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	response, err := to.RoundTrip(r.WithContext(ctx))
	if err != nil || response.ContentLength >= 0 {
		cancel(nil)
		return response, err
	}
	// A watch ends when the way is cut.
	body := &cutBody{ReadCloser: response.Body, closed: make(chan struct{})}
	response.Body = body
	go func() {
		select {
		case <-down:
			cancel(errCut)
		case <-body.closed:
			cancel(nil)
		}
	}()
	return response, nil
}

// bodyOf is the content of a request.
func bodyOf(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.LimitReader(body, 2000))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// anyProgram names the client of a link, which is one.
func anyProgram(*http.Request) string { return "" }

// cutBody is the body of a watch.
type cutBody struct {
	io.ReadCloser

	once   sync.Once
	closed chan struct{}
}

// Close implements io.Closer.
func (b *cutBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// isWrite reports whether a request writes anything but a lease or an Event.
func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	resource := apiserver.ResourceOf(r)
	return resource != "leases" && resource != "events" && resource != "selfsubjectaccessreviews" &&
		resource != "selfsubjectreviews" && resource != "selfsubjectrulesreviews"
}

// router sends requests to API servers by their hosts. Answers take no time: a program that waits for one with a lock
// would let the clock of a bubble stand still for ever.
type router map[string]*link

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(request *http.Request) (*http.Response, error) {
	l := r[request.URL.Host]
	if l == nil {
		return nil, errors.New("no such host: " + request.URL.Host)
	}
	return l.RoundTrip(request)
}
