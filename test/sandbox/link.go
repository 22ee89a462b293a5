package sandbox

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Link is a way to an API server that can be cut and mended: a port on loopback that passes bytes on, so TLS and client
// certificates stay those of the two ends.
type Link struct {
	// Host is the URL of this end.
	Host string

	listener net.Listener

	mu     sync.Mutex
	target string
	cut    bool
	conns  map[net.Conn]struct{}
	all    sync.WaitGroup
	// up carries what is sent to the API server, down what comes from it.
	up, down lane
}

// NewLink opens a link to the API server at a URL; the caller must call Close.
func NewLink(host string) (*Link, error) {
	target, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("linking to %s: %w", host, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("linking to %s: %w", host, err)
	}
	l := &Link{
		Host: "https://" + listener.Addr().String(), listener: listener, target: target.Host,
		conns: map[net.Conn]struct{}{},
	}
	l.all.Go(l.accept)
	return l, nil
}

// Cut ends all connections at once and refuses new ones until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.closeAll()
}

// Mend lets connections through again.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Slow lets the link carry so many bytes a second in each direction, all connections together, and holds up each
// packet for the delay.
func (l *Link) Slow(bytesPerSecond int, delay time.Duration) {
	l.up.slow(bytesPerSecond, delay)
	l.down.slow(bytesPerSecond, delay)
}

// Sent is how many bytes went to the API server.
func (l *Link) Sent() int64 { return l.up.sent.Load() }

// Lead lets the link end at another API server from now on: what is connected is cut.
func (l *Link) Lead(host string) error {
	target, err := url.Parse(host)
	if err != nil {
		return fmt.Errorf("linking to %s: %w", host, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target.Host
	l.closeAll()
	return nil
}

// Close ends the link and all its connections.
func (l *Link) Close() {
	l.Cut()
	_ = l.listener.Close()
	l.all.Wait()
}

func (l *Link) closeAll() {
	for conn := range l.conns {
		_ = conn.Close()
	}
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.all.Go(func() { l.pass(near) })
	}
}

// pass carries the bytes of one connection until one of its ends goes away.
func (l *Link) pass(near net.Conn) {
	defer func() { _ = near.Close() }()
	if !l.keep(near) {
		return
	}
	defer l.drop(near)
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return // the near end notices
	}
	defer func() { _ = far.Close() }()
	if !l.keep(far) {
		return
	}
	defer l.drop(far)
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.down.carry(near, far)
		_ = near.Close()
	}()
	l.up.carry(far, near)
	_ = far.Close()
	<-back
}

// keep notes a connection so that it can be cut; false means that the link is cut already.
func (l *Link) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *Link) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}
