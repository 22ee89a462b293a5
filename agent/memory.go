package agent

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
)

const (
	// burst is after how many requests memory is worth giving back. At rest an agent sends one or two in a minute.
	burst = 100
	// calm is how long there must be no request before it is given back.
	calm = 2 * time.Second
)

// thrift gives memory back when a burst of work is over: the start, or works that came. It looks at requests, because
// the agent does nothing without them. Nothing runs between two bursts: the timer is set by the request that makes a
// burst of those before it, and goes off until the burst is over.
type thrift struct {
	clock clock.WithDelayedExecution
	// give gives memory back.
	give func()

	mu sync.Mutex
	// requests counts those since memory was given back, last is when the last one was.
	requests int
	last     time.Time
}

// newThrift returns a thrift for which the start is a burst, however few its requests are.
func newThrift(clock clock.WithDelayedExecution, give func()) *thrift {
	return &thrift{clock: clock, give: give, requests: burst - 1}
}

// wrap counts the requests of a transport.
func (t *thrift) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		t.worked()
		return next.RoundTrip(request)
	})
}

// chain puts both around a transport; the outer one may be nil.
func chain(inner, outer transport.WrapperFunc) transport.WrapperFunc {
	if outer == nil {
		return inner
	}
	return func(next http.RoundTripper) http.RoundTripper { return outer(inner(next)) }
}

// worked counts one request.
func (t *thrift) worked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.last = t.clock.Now()
	if t.requests == burst {
		t.clock.AfterFunc(calm, t.look)
	}
}

// look gives memory back, or waits on while there is work.
func (t *thrift) look() {
	t.mu.Lock()
	left := calm - t.clock.Since(t.last)
	if left > 0 {
		t.clock.AfterFunc(left, t.look)
		t.mu.Unlock()
		return
	}
	t.requests = 0
	t.mu.Unlock()
	t.give()
}

// span is a range of addresses.
type span struct{ start, end uintptr }

// programSpans returns the parts of the memory of a process that are pages of its program as they are in the file, by
// the lines of /proc/self/smaps (proc(5)). A part in which somebody changed a page, as a debugger does to stop there,
// is none: the change would be lost.
func programSpans(smaps io.Reader) ([]span, error) {
	var found []span
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case fields[0] == "Anonymous:":
			if candidate && fields[1] != "0" {
				found = found[:len(found)-1]
			}
			candidate = false
		case !strings.HasSuffix(fields[0], ":"):
			// The first line of a part: addresses, permissions, offset, device, inode, file.
			candidate = len(fields) > 5 && strings.HasPrefix(fields[5], "/") && !strings.Contains(fields[1], "w")
			if !candidate {
				continue
			}
			part, err := parseSpan(fields[0])
			if err != nil {
				return nil, err
			}
			found = append(found, part)
		}
	}
	return found, lines.Err()
}

// parseSpan reads a range of addresses as proc(5) writes it.
func parseSpan(text string) (span, error) {
	first, second, _ := strings.Cut(text, "-")
	start, err := strconv.ParseUint(first, 16, strconv.IntSize)
	if err != nil {
		return span{}, fmt.Errorf("reading the addresses %q: %w", text, err)
	}
	end, err := strconv.ParseUint(second, 16, strconv.IntSize)
	if err != nil {
		return span{}, fmt.Errorf("reading the addresses %q: %w", text, err)
	}
	return span{uintptr(start), uintptr(end)}, nil
}
