package forward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// Conn is a connection to a pod's port. It is one end of a pipe, which has the deadlines that
// a stream has not; the other end is copied from and to the stream.
type Conn struct {
	net.Conn
	remote  address
	streams httpstream.Connection
	failure atomic.Pointer[error]
	closing sync.Once
	// sent and received are closed when nothing more is copied to, or comes from, the stream.
	sent, received chan struct{}
}

// closeWait is how long Close waits until the pod has closed its side, too: what was written
// last must not be lost on the way.
const closeWait = time.Second

// address is a pod and its port.
type address string

func (address) Network() string  { return "pod" }
func (a address) String() string { return string(a) }

func newConn(streams httpstream.Connection, pod string, port int) (*Conn, error) {
	h := http.Header{}
	h.Set(corev1.PortHeader, strconv.Itoa(port))
	h.Set(corev1.PortForwardRequestIDHeader, "0")
	h.Set(corev1.StreamType, corev1.StreamTypeError)
	trouble, err := streams.CreateStream(h)
	if err != nil {
		return nil, err
	}
	_ = trouble.Close() // nothing is written to it
	h.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := streams.CreateStream(h)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c := &Conn{Conn: near, remote: address(net.JoinHostPort(pod, strconv.Itoa(port))), streams: streams, sent: make(chan struct{}), received: make(chan struct{})}
	go c.listenForTrouble(trouble, far)
	go func() {
		defer close(c.received)
		_, _ = io.Copy(far, data)
		_ = far.Close()
		_, _ = io.Copy(io.Discard, data) // what nobody reads must not hold up the end
	}()
	go func() {
		defer close(c.sent)
		_, _ = io.Copy(data, far)
		_ = data.Close()
	}()
	go func() { // a lost connection to the API server ends the streams only after a while
		<-streams.CloseChan()
		_ = far.Close()
	}()
	return c, nil
}

// listenForTrouble waits for what the node has to say, which is one message, when it cannot
// reach the port.
func (c *Conn) listenForTrouble(trouble httpstream.Stream, far net.Conn) {
	b, err := io.ReadAll(io.LimitReader(trouble, 4096))
	if err != nil || len(b) == 0 {
		return
	}
	err = fmt.Errorf("%s: %s", c.remote, strings.Join(strings.Fields(string(b)), " "))
	c.failure.Store(&err)
	_ = far.Close()
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.reason(err)
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.reason(err)
}

// reason puts what the node has said in the place of the end that it came with.
func (c *Conn) reason(err error) error {
	if f := c.failure.Load(); f != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)) {
		return *f
	}
	return err
}

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Close implements net.Conn. What was written reaches the pod, if it can.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		_ = c.Conn.Close()
		patience := time.NewTimer(closeWait)
		defer patience.Stop()
		for _, done := range []chan struct{}{c.sent, c.received} {
			select {
			case <-done:
			case <-c.streams.CloseChan():
			case <-patience.C:
				patience.Reset(0)
			}
		}
		_ = c.streams.Close()
	})
	return nil
}
