package machine

import (
	"fmt"
	"net"
)

// Ports finds n ports in a row on 127.0.0.1 that nobody listens on, from a first one on.
func Ports(from, n int) (int, error) {
	for first := from; first+n < 1<<16; first += n {
		if allFree(first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("there are no %d free ports in a row from %d on", n, from)
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		_ = ln.Close()
	}
	return true
}
