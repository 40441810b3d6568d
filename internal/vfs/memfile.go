package vfs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"time"
)

// node is the content of one file; it outlives its names while a handle is open.
type node struct {
	data  []byte
	mod   time.Time
	links int // names that it has
	// history is what has happened to the content since the last sync, oldest first:
	// undone from the newest to the oldest, it leads from data to what is durable.
	history []change
	// dropped is how many changes at the beginning of history a failed sync has given
	// up: the next sync will say that they are durable, and they are not.
	dropped int
	// lost holds, by number, the sectors for which the disk has other bytes than the
	// page cache although no sync will write them any more.
	lost map[int64][]byte
}

// change is a write or truncation that is not durable yet.
type change struct {
	off int64  // where the write begins, or the size that a truncation left
	end int64  // where the write ended; off for a truncation
	old []byte // what was at off before, as far as it was changed or cut off
	was int64  // the size before
}

// resize cuts a file or makes it longer with zeros.
func (m *Mem) resize(n *node, size int64) {
	was := int64(len(n.data))
	c := change{off: size, end: size, was: was}
	switch {
	case size == was:
		return
	case size == 0:
		c.old, n.data = n.data, nil
	case size < was:
		c.old = slices.Clone(n.data[size:])
		n.data = n.data[:size]
	default:
		n.grow(size)
	}
	n.history = append(n.history, c)
	m.account(n, size-was)
}

// write puts the first length bytes of bufs at off.
func (m *Mem) write(n *node, bufs [][]byte, off, length int64) {
	was, end := int64(len(n.data)), off+length
	c := change{off: off, end: end, was: was}
	if off < was {
		c.old = slices.Clone(n.data[off:min(end, was)])
	}
	if end > was {
		n.grow(end)
		m.account(n, end-was)
	}
	at := off
	for _, b := range bufs {
		at += int64(copy(n.data[at:end], b))
	}
	n.history = append(n.history, c)
	n.mod = m.now()
}

func (n *node) grow(size int64) {
	n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
}

func (m *Mem) account(n *node, delta int64) {
	if n.links > 0 {
		m.used += delta
	}
}

// memFile is a handle.
type memFile struct {
	fs     *Mem
	node   *node
	name   string
	closed bool
}

func (f *memFile) check(op OpKind) error {
	if f.closed {
		return &fs.PathError{Op: string(op), Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.judge(Op{Kind: OpRead, Name: f.name}); err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpRead); err != nil {
		return 0, err
	}
	if off < 0 || off >= int64(len(f.node.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteVec implements File.
func (f *memFile) WriteVec(bufs [][]byte, off int64) (int64, error) {
	var length int64
	for _, b := range bufs {
		length += int64(len(b))
	}
	fits := length
	err := f.fs.judge(Op{Kind: OpWrite, Name: f.name, Bytes: length})
	var short *Short
	if errors.As(err, &short) {
		fits = min(max(short.Bytes, 0), length)
	} else if err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpWrite); err != nil {
		return 0, err
	}
	if m := f.fs; m.capacity >= 0 {
		room := max(0, m.capacity-m.used)
		room += max(0, int64(len(f.node.data))-off) // what is written over
		if room < fits {
			fits, err = room, &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
		}
	}
	if fits > 0 {
		f.fs.write(f.node, bufs, off, fits)
	}
	return fits, err
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if err := f.fs.judge(Op{Kind: OpTruncate, Name: f.name}); err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpTruncate); err != nil {
		return err
	}
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fs.ErrInvalid}
	}
	f.fs.resize(f.node, size)
	return nil
}

// Allocate implements File.
func (f *memFile) Allocate(size int64) error {
	if err := f.fs.judge(Op{Kind: OpWrite, Name: f.name, Bytes: size}); err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpWrite); err != nil {
		return err
	}
	more := size - int64(len(f.node.data))
	if m := f.fs; m.capacity >= 0 && more > max(0, m.capacity-m.used) {
		return &fs.PathError{Op: "allocate", Path: f.name, Err: syscall.ENOSPC}
	}
	if more > 0 {
		f.fs.resize(f.node, size)
	}
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	err := f.fs.judge(Op{Kind: OpSync, Name: f.name})
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	var dropped *Dropped
	if errors.As(err, &dropped) {
		f.node.drop()
	}
	if err != nil {
		return err
	}
	if err := f.check(OpSync); err != nil {
		return err
	}
	f.node.settle()
	return nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.node.data)), f.check("size")
}

// Close implements File.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	err := f.check("close")
	f.closed = true
	return err
}
