package kafka

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/internal/buffers"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// conn is one connection. Two goroutines run it: the reader takes requests off the
// wire and submits produced batches at once; the writer answers, in the order of
// the requests, and runs everything that is not Produce when its turn has come. So
// a pipelining producer's batches are enqueued in order and without waiting for
// each other, and a long poll never keeps the reader from seeing that the client
// has gone.
type conn struct {
	*serving
	nc net.Conn
	id uint64
	// queue hands exchanges from the reader to the writer.
	queue chan *exchange
	// unanswered counts exchanges that the writer has not finished.
	unanswered atomic.Int32
	// polling ends when nobody waits for a long poll any more: the client has left,
	// or the server stops. gone ends later, when answers that are due are given up.
	polling, gone       context.Context
	stopPolling, giveUp context.CancelFunc

	// replica is who last fetched over this connection; only the writer uses it.
	replica struct {
		id      epoch.ReplicaID
		session epoch.Session
	}
}

func newConn(sv *serving, nc net.Conn) *conn {
	c := &conn{serving: sv, nc: nc, id: connectionIDs.Add(1), queue: make(chan *exchange, sv.limits.MaxOutstanding)}
	c.replica.id = epoch.NoReplica
	return c
}

// run serves the connection until one side has had enough.
func (c *conn) run(ctx context.Context) {
	defer c.nc.Close()
	c.gone, c.giveUp = context.WithCancel(context.Background())
	defer c.giveUp()
	c.polling, c.stopPolling = context.WithCancel(ctx)
	defer c.stopPolling()
	// The reader hears of an end through an expired read deadline; see arm.
	defer context.AfterFunc(c.polling, func() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) })()

	written := make(chan error, 1)
	go func() {
		written <- c.write()
		c.stopPolling()
	}()
	readErr := c.read()
	close(c.queue)
	c.stopPolling()
	drain := time.AfterFunc(c.limits.DrainTimeout, func() {
		c.giveUp()
		_ = c.nc.Close()
	})
	writeErr := <-written
	drain.Stop()
	if c.replica.id != epoch.NoReplica {
		c.Partition.ReplicaDisconnected(c.replica.id, c.replica.session, c.id)
	}
	c.report(readErr, writeErr)
}

// report logs a connection that was closed because of what it sent.
func (c *conn) report(errs ...error) {
	for _, err := range errs {
		if errors.Is(err, errMalformed) {
			c.metrics.closed.Inc()
			c.Log.V(1).Info("connection closed", "listener", c.Listener.String(), "remote", c.nc.RemoteAddr().String(), "reason", err.Error())
			return
		}
	}
}

// read takes requests until the client closes, sends something malformed, stalls,
// or the connection ends.
func (c *conn) read() error {
	br := bufio.NewReaderSize(c.nc, 16<<10)
	fr := &frameReader{r: br, maxBytes: c.limits.MaxRequestBytes, budget: c.budget, arm: func() error { return c.arm(c.limits.StallTimeout) }}
	for {
		if err := c.awaitRequest(br); err != nil {
			return err
		}
		f, err := fr.next(c.polling)
		if err != nil {
			return err
		}
		c.metrics.received.Add(float64(len(f.bytes) + 4))
		x, err := c.begin(f)
		if err != nil {
			f.release()
			return err
		}
		c.unanswered.Add(1)
		select {
		case c.queue <- x:
		case <-c.polling.Done():
			x.frame.release()
			return c.polling.Err()
		}
	}
}

// awaitRequest waits for the first byte of a request, for the idle timeout counted
// from when nothing was left to answer.
func (c *conn) awaitRequest(br *bufio.Reader) error {
	for {
		if br.Buffered() > 0 {
			return nil
		}
		if err := c.arm(c.limits.IdleTimeout); err != nil {
			return err
		}
		_, err := br.Peek(1)
		if errors.Is(err, os.ErrDeadlineExceeded) && c.polling.Err() == nil && c.unanswered.Load() > 0 {
			continue
		}
		if err != nil {
			return err
		}
	}
}

// arm sets the deadline of the next read. The end of polling sets one in the past;
// looking at polling after the deadline is set makes sure that it is not undone.
func (c *conn) arm(d time.Duration) error {
	if err := c.nc.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	return c.polling.Err()
}

// begin makes an exchange of a frame and submits it if it is Produce.
func (c *conn) begin(f *frame) (*exchange, error) {
	h, err := parseKey(f.bytes)
	if err != nil {
		return nil, err
	}
	a := c.lookup(h.key)
	if a == nil {
		return nil, fmt.Errorf("%w: API key %d (%s) is not served on the %s listener", errMalformed, h.key, kmsg.NameForKey(h.key), c.Listener)
	}
	c.metrics.requests[a.key].Inc()
	x := &exchange{conn: c, api: a, header: h, frame: f}
	if lo, hi := a.versions(c.Listener); h.version < lo || h.version > hi {
		if a.key != keyAPIVersions {
			return nil, fmt.Errorf("%w: %s version %d is not served; served are %d to %d", errMalformed, a.name, h.version, lo, hi)
		}
		x.wait = x.unsupportedAPIVersions
		return x, nil
	}
	req := kmsg.RequestForKey(h.key)
	req.SetVersion(h.version)
	body, err := x.parseRest(f.bytes, req.IsFlexible())
	if err != nil {
		return nil, err
	}
	if a.key == keyProduce {
		return x, x.submitProduce(req.(*kmsg.ProduceRequest), body)
	}
	if len(body) > maxOtherRequestBytes {
		return nil, fmt.Errorf("%w: %s of %d bytes; at most %d are served", errMalformed, a.name, len(body), maxOtherRequestBytes)
	}
	x.wait = func() (kmsg.Response, error) { return x.handleNow(req, body) }
	return x, nil
}

func (c *conn) lookup(key int16) *api {
	for _, a := range c.apis {
		if a.key == key {
			return a
		}
	}
	return nil
}

// write answers exchanges in their order until the queue is closed or an answer
// cannot be given. What is left in the queue is released unanswered.
func (c *conn) write() (err error) {
	for x := range c.queue {
		if err == nil {
			err = c.answer(x)
			if err != nil {
				c.stopPolling()
			}
		}
		x.frame.release()
		c.unanswered.Add(-1)
	}
	return err
}

func (c *conn) answer(x *exchange) error {
	resp, err := x.wait()
	if err != nil || resp == nil {
		return err
	}
	out := encodeResponse(x.correlationID, resp)
	err = writeAll(c.nc, out.pieces, c.limits.StallTimeout)
	x.done()
	c.metrics.sent.Add(float64(out.size))
	buffers.Put(out.buffer)
	if err != nil {
		return fmt.Errorf("write a response: %w", err)
	}
	return nil
}
