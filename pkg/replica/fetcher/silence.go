package fetcher

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that loses power says nothing: its connections stay open until somebody
// asks. Both ends of a replication connection ask, so that a follower whose node is
// gone leaves the ISR in seconds and acks=all does not wait for the whole lag time.
const maxSilence = 4 * time.Second

// KeepAlive is for both ends of replication connections.
var KeepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// LimitSilence bounds how long sent data may stay unacknowledged, where keep-alive
// probes are not sent (RFC 5482). It is a Control function of net.Dialer and
// net.ListenConfig; accepted connections inherit the option.
func LimitSilence(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(maxSilence.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
