package sandbox

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// packet is how many bytes a slow lane carries at once.
	packet = 1400
	// inFlight is how many packets one connection may have on its way.
	inFlight = 64
)

// lane is one direction of a link.
type lane struct {
	sent atomic.Int64

	mu    sync.Mutex
	rate  int
	delay time.Duration
	// free is when the lane can take the next packet.
	free time.Time
}

// parcel is a packet on its way.
type parcel struct {
	data    []byte
	arrives time.Time
}

// slow bounds the lane.
func (n *lane) slow(bytesPerSecond int, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rate, n.delay = bytesPerSecond, delay
}

// arrival takes a packet, and returns when it arrives.
func (n *lane) arrival(size int, now time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rate == 0 {
		return now
	}
	if n.free.Before(now) {
		n.free = now
	}
	n.free = n.free.Add(time.Duration(size) * time.Second / time.Duration(n.rate))
	return n.free.Add(n.delay)
}

// carry passes bytes on until one of the ends goes away.
func (n *lane) carry(to io.Writer, from io.Reader) {
	parcels := make(chan parcel, inFlight)
	var delivery sync.WaitGroup
	delivery.Go(func() {
		var err error
		for p := range parcels {
			if err == nil {
				time.Sleep(time.Until(p.arrives))
				_, err = to.Write(p.data)
			}
		}
	})
	for {
		data := make([]byte, packet)
		size, err := from.Read(data)
		if size > 0 {
			n.sent.Add(int64(size))
			parcels <- parcel{data[:size], n.arrival(size, time.Now())}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	delivery.Wait()
}
