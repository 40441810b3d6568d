package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Client sends requests over one connection, one at a time. It is what a follower
// talks to its leader with: no pool, no retry, no metadata.
type Client struct {
	mu            sync.Mutex
	nc            net.Conn
	in            *bufio.Reader // a small response, with its size, is one read
	format        *kmsg.RequestFormatter
	maxBytes      int
	correlationID int32
	broken        error
	out, body     []byte
}

// NewClient takes over the connection. clientID goes into every request; a replica
// sends its start id. A response larger than maxResponseBytes is refused.
func NewClient(nc net.Conn, clientID string, maxResponseBytes int) *Client {
	return &Client{nc: nc, in: bufio.NewReaderSize(nc, 4<<10), format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)), maxBytes: maxResponseBytes}
}

// Close closes the connection. A Do under way fails.
func (c *Client) Close() error { return c.nc.Close() }

// Do sends the request in the version that is set in it and waits for the response.
// Concurrent calls wait for each other.
//
// After any error, the end of ctx included, the connection is closed and every
// further call fails: what the other side has done about the request is unknown.
//
// Byte fields of the response, such as records, lie in the client's buffer and are
// valid until the next call.
func (c *Client) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, fmt.Errorf("the connection to %s failed before: %w", c.nc.RemoteAddr(), c.broken)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.roundTrip(req)
	if !stop() && err == nil {
		err = ctx.Err() // the deadline is in the past: nothing more can be sent
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.broken = fmt.Errorf("%s to %s: %w", kmsg.NameForKey(req.Key()), c.nc.RemoteAddr(), err)
		_ = c.nc.Close()
		return nil, c.broken
	}
	return resp, nil
}

func (c *Client) roundTrip(req kmsg.Request) (kmsg.Response, error) {
	c.correlationID++
	c.out = c.format.AppendRequest(c.out[:0], req, c.correlationID)
	if _, err := c.nc.Write(c.out); err != nil {
		return nil, err
	}
	if err := c.readFrame(); err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	body, err := c.answer(resp)
	if err != nil {
		return nil, err
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode the response: %w", err)
	}
	return resp, nil
}

// readFrame reads one response into the client's buffer, which grows as the bytes
// come in.
func (c *Client) readFrame() error {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return noEOF(err)
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < 4 || int64(size) > int64(c.maxBytes) {
		return fmt.Errorf("response of %d bytes is not between 4 and %d", size, c.maxBytes)
	}
	const step = 1 << 20
	c.body = c.body[:0]
	for have := 0; have < int(size); have = len(c.body) {
		want := min(int(size), max(cap(c.body), have+step))
		if want > cap(c.body) {
			c.body = append(make([]byte, 0, min(int(size), max(want, 2*cap(c.body)))), c.body...)
			want = cap(c.body)
		}
		c.body = c.body[:min(want, int(size))]
		if _, err := io.ReadFull(c.in, c.body[have:]); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// answer checks the response's header and returns what follows it.
func (c *Client) answer(resp kmsg.Response) ([]byte, error) {
	if got := int32(binary.BigEndian.Uint32(c.body)); got != c.correlationID {
		return nil, fmt.Errorf("response carries correlation id %d instead of %d", got, c.correlationID)
	}
	body := c.body[4:]
	if !resp.IsFlexible() || resp.Key() == keyAPIVersions {
		return body, nil
	}
	return skipHeaderTags(body)
}

// noEOF makes a closed connection an error that is not mistaken for an end of data.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
