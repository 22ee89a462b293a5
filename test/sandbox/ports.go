package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range that Linux gives to outgoing connections. In that range, the connections of the
// control planes themselves would take some between our look and the start of the server.
const (
	firstPort  = 20000
	portCount  = 12000
	blockPorts = 100
	portTries  = 1000
)

// ownPorts are those of this process.
var ownPorts portBlocks

// FreePorts returns ports of loopback that were free a moment ago, and that no other call returns, in this process or
// in another one that runs at the same time: a server may listen only seconds later.
func FreePorts(n int) ([]int, error) { return ownPorts.free(n) }

// portBlocks hands out ports of blocks that one process has for itself. It listens at the first port of each block as
// long as it runs, which keeps other processes away.
type portBlocks struct {
	mu        sync.Mutex
	held      []net.Listener
	next, end int
}

func (p *portBlocks) free(n int) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := make([]int, 0, n)
	var taken error
	for range portTries {
		if len(free) == n {
			return free, nil
		}
		if p.next == p.end {
			if err := p.take(); err != nil {
				taken = err
			}
			continue
		}
		port := p.next
		p.next++
		// Servers of a process that has ended may still be there.
		if listener, err := listenLocally(port); err == nil {
			listener.Close()
			free = append(free, port)
		}
	}
	return nil, errors.Join(fmt.Errorf("found no %d free ports in %d tries", n, portTries), taken)
}

// take tries to get one more block.
func (p *portBlocks) take() error {
	first := firstPort + blockPorts*rand.IntN(portCount/blockPorts)
	listener, err := listenLocally(first)
	if err != nil {
		return err
	}
	p.held = append(p.held, listener)
	p.next, p.end = first+1, first+blockPorts
	return nil
}

func listenLocally(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
