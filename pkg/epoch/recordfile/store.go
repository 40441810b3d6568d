package recordfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"sync"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	fileName = "partition-record.json"
	lockName = ".partition-record.lock"
)

// Store keeps the record. Its methods may be called by several goroutines.
type Store struct {
	fs     vfs.FS
	name   string
	unlock func() error

	// mu orders reads and writes of the file; it is held over their I/O, which is
	// what makes compare-and-swap one step.
	mu      sync.Mutex
	closed  bool
	failed  error
	changed chan struct{} // closed by the next write
}

// Open opens the store in dir, which is made if it does not exist. The record need not
// exist: see Create. Another process that has it open is an error.
func Open(dir string) (*Store, error) {
	if err := (vfs.OS{}).MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("open the partition record: %w", err)
	}
	unlock, err := lock(path.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("open the partition record in %s: %w", dir, err)
	}
	s := open(dir, vfs.OS{})
	s.unlock = unlock
	return s, nil
}

func open(dir string, fsys vfs.FS) *Store {
	return &Store{fs: fsys, name: path.Join(dir, fileName), unlock: func() error { return nil }, changed: make(chan struct{})}
}

var errClosed = errors.New("the partition record's file is closed")

// Get returns the record. The error wraps [epoch.ErrNotFound] before Create,
// [recordjson.ErrMalformed] or [recordjson.ErrNewerVersion] for a file that cannot be
// read as a record.
func (s *Store) Get(ctx context.Context) (epoch.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return epoch.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, snap, err := s.readLocked()
	return snap, err
}

// Create writes the first record. The error wraps [epoch.ErrConflict] if there is one,
// [epoch.ErrRejected] if r is no record; any other error leaves the write undecided.
func (s *Store) Create(ctx context.Context, r epoch.Record) (epoch.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return epoch.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, _, err := s.readLocked(); {
	case err == nil:
		return epoch.Snapshot{}, fmt.Errorf("create the partition record: %w: it exists", epoch.ErrConflict)
	case !errors.Is(err, epoch.ErrNotFound):
		return epoch.Snapshot{}, err
	}
	return s.writeLocked(content{}, r)
}

// Update replaces the record if it is still as base was read. The errors are those of
// package lease's Update.
func (s *Store) Update(ctx context.Context, base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return epoch.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, snap, err := s.readLocked()
	if err != nil {
		return epoch.Snapshot{}, err
	}
	if snap.Version != base.Version {
		return epoch.Snapshot{}, fmt.Errorf("update the partition record: %w (at version %s, read was %q)", epoch.ErrConflict, snap.Version, base.Version)
	}
	if next.TopicID != snap.Record.TopicID {
		return epoch.Snapshot{}, fmt.Errorf("update the partition record: %w: topic id %s, the record has %s", epoch.ErrRejected, next.TopicID, snap.Record.TopicID)
	}
	return s.writeLocked(have, next)
}

// Watch calls onChange with the record as it is and then after every write, skipping
// some as it likes, and onError when there is none or it cannot be read, until ctx or
// the store ends. It returns the error of ctx, or that the store is closed.
func (s *Store) Watch(ctx context.Context, onChange func(epoch.Snapshot), onError func(error)) error {
	for {
		s.mu.Lock()
		_, snap, err := s.readLocked()
		next, closed := s.changed, s.closed
		s.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case closed:
			return errClosed
		case err != nil:
			onError(err)
		default:
			onChange(snap)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// Close ends the watches and gives the lock back. It may be called again.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.changed)
	return s.unlock()
}

func (s *Store) readLocked() (content, epoch.Snapshot, error) {
	if s.closed {
		return content{}, epoch.Snapshot{}, errClosed
	}
	b, err := vfs.ReadFile(s.fs, s.name, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, epoch.Snapshot{}, epoch.ErrNotFound
	}
	if err != nil {
		return content{}, epoch.Snapshot{}, fmt.Errorf("read the partition record: %w", err)
	}
	c, r, err := decode(b)
	if err != nil {
		return content{}, epoch.Snapshot{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return c, epoch.Snapshot{Record: r, Version: strconv.FormatUint(c.Version, 10)}, nil
}

// writeLocked replaces old, of which unknown fields survive, and wakes the watches.
func (s *Store) writeLocked(old content, r epoch.Record) (epoch.Snapshot, error) {
	if s.failed != nil {
		return epoch.Snapshot{}, fmt.Errorf("write the partition record: an earlier write failed, start the process anew: %w", s.failed)
	}
	b, err := encode(old, r)
	if err != nil {
		return epoch.Snapshot{}, fmt.Errorf("write the partition record: %w: %w", epoch.ErrRejected, err)
	}
	if err := vfs.WriteFileAtomic(s.fs, s.name, b); err != nil {
		// A full disk wrote nothing that counts; anything else is open for good.
		if !vfs.IsNoSpace(err) || !s.holds(old) {
			s.failed = err
		}
		return epoch.Snapshot{}, fmt.Errorf("write the partition record: %w", err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	_, snap, err := s.readLocked()
	return snap, err
}

// holds reports whether the file is as it was before the write.
func (s *Store) holds(old content) bool {
	b, err := vfs.ReadFile(s.fs, s.name, maxBytes)
	if old.Version == 0 {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && bytes.Equal(b, old.raw)
}
