package fetcher

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Owner owns the replication core. Its methods may block until the owner's loop has
// taken the call, and return early when ctx ends.
type Owner interface {
	NextFetch(ctx context.Context) (core.FetchRequest, bool)
	Fetched(ctx context.Context, q core.FetchRequest, a core.FetchResponse)
	OutOfRange(ctx context.Context, q core.FetchRequest, start, end epoch.Offset)
	FetchFailed(ctx context.Context, q core.FetchRequest, fenced bool)
	// LeaderEnded says that the leader's process is no more: it closed a connection that it
	// had answered on in this epoch, and its machine refuses the next one.
	LeaderEnded(ctx context.Context, e epoch.LeaderEpoch)
}

// Config says who fetches, and how much at a time.
type Config struct {
	Me      core.Identity
	Topic   string
	TopicID epoch.UUID
	// MaxWait bounds the leader's wait for records, MaxBytes what it sends.
	MaxWait  time.Duration
	MaxBytes int
	Log      logr.Logger
}

// The pause after a failed fetch doubles from the first to the second.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Fetcher runs at most one fetch loop. Follow, Stop, Wake and Backoff never block and
// are called by the owner's loop only.
type Fetcher struct {
	owner Owner
	wake  chan struct{}

	mu     sync.Mutex // guards cfg and pause, which the loop reads
	cfg    Config
	pause  bool
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New makes a fetcher that follows nobody yet.
func New(cfg Config, owner Owner) *Fetcher {
	return &Fetcher{cfg: cfg, owner: owner, wake: make(chan struct{}, 1)}
}

// Configure changes limits for the fetches to come.
func (f *Fetcher) Configure(maxWait time.Duration, maxBytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cfg.MaxWait, f.cfg.MaxBytes = maxWait, maxBytes
}

// Follow starts to fetch from that leader in that epoch.
func (f *Fetcher) Follow(leader epoch.ReplicaID, address epoch.Address, e epoch.LeaderEpoch) {
	f.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	l := &loop{fetcher: f, address: address, log: f.cfg.Log.WithValues("leader", leader, "leaderEpoch", e)}
	f.done.Go(func() { l.run(ctx) })
}

// Stop ends the loop; what it has outstanding is abandoned.
func (f *Fetcher) Stop() {
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
}

// Close stops the loop and waits until it has ended. The owner's loop must have ended
// or serve calls meanwhile.
func (f *Fetcher) Close() {
	f.Stop()
	f.done.Wait()
}

// Wake says that NextFetch may have something to send now.
func (f *Fetcher) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Backoff makes the loop pause before its next fetch: what it fetched could not be
// used.
func (f *Fetcher) Backoff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pause = true
}

func (f *Fetcher) config() (cfg Config, pause bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pause, f.pause = f.pause, false
	return f.cfg, pause
}

// loop is one Follow.
type loop struct {
	fetcher *Fetcher
	address epoch.Address
	log     logr.Logger
	conn    *connection
	failing bool
	// answered tells of conn, and hungUp of the one before, that the leader had answered a
	// fetch on it and then closed it.
	answered, hungUp bool
}

func (l *loop) run(ctx context.Context) {
	defer l.disconnect()
	pause := firstPause
	for ctx.Err() == nil {
		cfg, backoff := l.fetcher.config()
		if backoff {
			sleep(ctx, lastPause)
		}
		q, ok := l.fetcher.owner.NextFetch(ctx)
		if !ok {
			select {
			case <-l.fetcher.wake:
			case <-ctx.Done():
			}
			continue
		}
		if err := l.once(ctx, cfg, q); err != nil && ctx.Err() == nil {
			l.fail(ctx, q, err)
			sleep(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		if l.failing {
			l.failing = false
			l.log.Info("fetching from the leader again")
		}
		pause = firstPause
	}
}

// once sends one fetch and hands over its answer.
func (l *loop) once(ctx context.Context, cfg Config, q core.FetchRequest) error {
	if l.conn == nil {
		conn, err := connect(ctx, l.address, cfg)
		if err != nil {
			return err
		}
		l.conn, l.answered, l.hungUp = conn, false, false
	}
	a, err := l.conn.fetch(ctx, cfg, q)
	switch {
	case errors.Is(err, core.ErrOffsetOutOfRange):
		start, end, err := l.conn.bounds(ctx, cfg, q.LeaderEpoch)
		if err != nil {
			return err
		}
		l.fetcher.owner.OutOfRange(ctx, q, start, end)
		return nil
	case err != nil:
		return err
	}
	l.answered = true
	l.fetcher.owner.Fetched(ctx, q, a)
	return nil
}

func (l *loop) fail(ctx context.Context, q core.FetchRequest, err error) {
	var refused *refusal
	if !errors.As(err, &refused) {
		l.hungUp = l.hungUp || l.conn != nil && l.answered && closedByPeer(err)
		l.disconnect()
	}
	if !l.failing {
		l.failing = true
		l.log.Info("cannot fetch from the leader; trying again", "error", err.Error())
	}
	if l.hungUp && errors.Is(err, syscall.ECONNREFUSED) {
		l.hungUp = false // it is told once
		l.log.Info("the leader's process has ended: it closed the connection, and its machine refuses another one")
		l.fetcher.owner.LeaderEnded(ctx, q.LeaderEpoch)
	}
	l.fetcher.owner.FetchFailed(ctx, q, errors.Is(err, core.ErrFencedLeaderEpoch))
}

func (l *loop) disconnect() {
	if l.conn != nil {
		l.conn.close()
		l.conn = nil
	}
}

// closedByPeer tells a connection that the other side has closed from one that was given
// up on this side, as after a silence.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
