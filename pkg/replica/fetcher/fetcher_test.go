package fetcher

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// A leader's process that ends closes its listener and its connections; one that only hangs
// up, or is out of reach from the start, may still be at work.
func TestTheEndOfALeadersProcessIsNoticed(t *testing.T) {
	t.Run("it closes the connection and refuses another", func(t *testing.T) {
		l, o := follow(t)
		l.answer(t)
		o.await(t, fetched)
		l.die()
		if o.awaitEither(t, ended, failedThrice) != ended {
			t.Error("it was not noticed")
		}
	})
	t.Run("it closes the connection and accepts another", func(t *testing.T) {
		l, o := follow(t)
		l.answer(t)
		o.await(t, fetched)
		l.hangUp()
		l.answer(t)
		if o.awaitEither(t, ended, fetched) != fetched {
			t.Error("it was taken for ended")
		}
		l.hangUp()
		l.accept(t)
		l.die()
		if o.awaitEither(t, ended, failedThrice) == ended {
			t.Error("it was taken for ended, though it had answered nothing on its last connection")
		}
	})
	t.Run("it was never reached", func(t *testing.T) {
		l, o := listening(t)
		l.die()
		o.start(t, l)
		if o.awaitEither(t, ended, failedThrice) == ended {
			t.Error("it was taken for ended")
		}
	})
	t.Run("it is silent", func(t *testing.T) {
		l, o := listening(t)
		o.patience = -answerGrace + 50*time.Millisecond // this side gives up
		o.start(t, l)
		l.answer(t)
		o.await(t, fetched)
		_ = l.listener.Close()
		if o.awaitEither(t, ended, failedThrice) == ended {
			t.Error("it was taken for ended, though it has not closed the connection")
		}
	})
}

const leaderEpoch = 7

// leader is a listener of which the test says when it answers.
type leader struct {
	listener net.Listener
	conn     net.Conn
}

func listening(t *testing.T) (*leader, *owner) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{listener: listener}
	t.Cleanup(l.die)
	return l, &owner{events: make(chan happening, 1000), patience: 10 * time.Second}
}

func follow(t *testing.T) (*leader, *owner) {
	t.Helper()
	l, o := listening(t)
	o.start(t, l)
	return l, o
}

func (l *leader) accept(t *testing.T) {
	t.Helper()
	var err error
	if l.conn, err = l.listener.Accept(); err != nil {
		t.Fatal(err)
	}
}

// answer accepts a connection and answers one fetch with nothing new.
func (l *leader) answer(t *testing.T) {
	t.Helper()
	l.accept(t)
	var head [4]byte
	if _, err := io.ReadFull(l.conn, head[:]); err != nil {
		t.Fatal(err)
	}
	request := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(l.conn, request); err != nil {
		t.Fatal(err)
	}
	topic := kmsg.NewFetchResponseTopic()
	topic.Partitions = append(topic.Partitions, kmsg.NewFetchResponseTopicPartition())
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(fetchVersion)
	resp.Topics = append(resp.Topics, topic)
	body := append(append([]byte{}, request[4:8]...), 0) // correlation id, no tags
	body = resp.AppendTo(body)
	if _, err := l.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		t.Fatal(err)
	}
}

func (l *leader) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

func (l *leader) die() {
	_ = l.listener.Close()
	l.hangUp()
}

type happening string

const (
	fetched      happening = "fetched"
	failed       happening = "failed"
	ended        happening = "ended"
	failedThrice happening = "failed three times"
)

// owner notes what the loop tells.
type owner struct {
	events   chan happening
	patience time.Duration
}

func (o *owner) start(t *testing.T, l *leader) {
	t.Helper()
	f := New(Config{Me: core.Identity{ID: 1, Session: 1, StartID: "start"}, Topic: "orders", MaxWait: o.patience, MaxBytes: 1 << 20, Log: logr.Discard()}, o)
	t.Cleanup(f.Close)
	address := l.listener.Addr().(*net.TCPAddr)
	f.Follow(0, epoch.Address{Host: address.IP.String(), ReplicationPort: int32(address.Port)}, leaderEpoch)
}

func (o *owner) NextFetch(context.Context) (core.FetchRequest, bool) {
	return core.FetchRequest{LeaderEpoch: leaderEpoch}, true
}
func (o *owner) Fetched(context.Context, core.FetchRequest, core.FetchResponse) { o.events <- fetched }
func (o *owner) OutOfRange(context.Context, core.FetchRequest, epoch.Offset, epoch.Offset) {
}
func (o *owner) FetchFailed(context.Context, core.FetchRequest, bool) { o.events <- failed }
func (o *owner) LeaderEnded(_ context.Context, e epoch.LeaderEpoch) {
	if e == leaderEpoch {
		o.events <- ended
	}
}

func (o *owner) await(t *testing.T, want happening) {
	t.Helper()
	for {
		select {
		case h := <-o.events:
			if h == want {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("the loop did not tell %q", want)
		}
	}
}

// awaitEither waits for the first of two. That the loop failed three times more, which is at
// least two connections refused, stands for its having had every chance.
func (o *owner) awaitEither(t *testing.T, one, other happening) happening {
	t.Helper()
	for failures := 0; ; {
		select {
		case h := <-o.events:
			if h == failed {
				if failures++; failures == 3 {
					h = failedThrice
				}
			}
			if h == one || h == other {
				return h
			}
		case <-time.After(time.Minute):
			t.Fatalf("the loop told neither %q nor %q", one, other)
		}
	}
}
