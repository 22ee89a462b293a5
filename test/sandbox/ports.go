package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that Linux gives to outgoing connections. In that range, the connections of the
// control planes themselves would take some between our look and the start of the server.
const (
	firstPort = 20000
	portCount = 12000
	portTries = 100
)

// FreePorts returns different ports of loopback that were free a moment ago.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var taken error
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(portCount)
		listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			taken = err
			continue
		}
		// All stay open until the last is found, so none comes twice.
		defer listener.Close()
		ports = append(ports, port)
	}
	return nil, errors.Join(fmt.Errorf("found no %d free ports in %d tries", n, portTries), taken)
}
