package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory that knows what a power cut would leave. The zero
// value is not usable: see NewMem.
type Mem struct {
	mu sync.Mutex
	// names are the files by path as a program sees them, durable as a power cut
	// would leave them. Directories are kept as names without a node.
	names, durable map[string]*node
	dirs           map[string]bool
	fault          func(Op) error
	capacity       int64
	now            func() time.Time
}

// node is the content of one file; it outlives its names while a handle is open.
type node struct {
	data   []byte
	synced []byte
	mod    time.Time
}

// OpKind names an operation that can be made to fail.
type OpKind string

// The operations that a fault function sees.
const (
	OpOpen     OpKind = "open"
	OpCreate   OpKind = "create"
	OpRemove   OpKind = "remove"
	OpRename   OpKind = "rename"
	OpRead     OpKind = "read"
	OpWrite    OpKind = "write"
	OpTruncate OpKind = "truncate"
	OpSync     OpKind = "sync"
	OpSyncDir  OpKind = "syncdir"
)

// Op is one operation on the file of that name.
type Op struct {
	Kind OpKind
	Name string
}

// NewMem returns an empty file system with the root directory only.
func NewMem() *Mem {
	return &Mem{
		names: map[string]*node{}, durable: map[string]*node{},
		dirs: map[string]bool{"/": true, ".": true}, capacity: -1, now: time.Now,
	}
}

// SetFault makes f judge every operation before it is done: an error is returned to
// the caller and nothing is done. Nil ends it. f may use the file system.
func (m *Mem) SetFault(f func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// SetCapacity makes writes fail with ENOSPC, after what still fits, once the files
// take n bytes together. Negative: no limit.
func (m *Mem) SetCapacity(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = n
}

// Used is how many bytes the files take together.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usedLocked()
}

func (m *Mem) usedLocked() int64 {
	var n int64
	for _, f := range m.names {
		n += int64(len(f.data))
	}
	return n
}

func (m *Mem) judge(kind OpKind, name string) error {
	m.mu.Lock()
	f := m.fault
	m.mu.Unlock()
	if f == nil {
		return nil
	}
	if err := f(Op{kind, name}); err != nil {
		return &fs.PathError{Op: string(kind), Path: name, Err: err}
	}
	return nil
}

func notExist(op OpKind, name string) error {
	return &fs.PathError{Op: string(op), Path: name, Err: fs.ErrNotExist}
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	name = path.Clean(name)
	if err := m.judge(OpOpen, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.names[name]
	if !ok {
		return nil, notExist(OpOpen, name)
	}
	return &memFile{fs: m, node: n, name: name}, nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	name = path.Clean(name)
	if err := m.judge(OpCreate, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[path.Dir(name)] {
		return nil, notExist(OpCreate, name)
	}
	n, ok := m.names[name]
	if !ok {
		n = &node{}
		m.names[name] = n
	}
	n.data, n.mod = nil, m.now()
	return &memFile{fs: m, node: n, name: name}, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	name = path.Clean(name)
	if err := m.judge(OpRemove, name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.names[name]; !ok {
		return notExist(OpRemove, name)
	}
	delete(m.names, name)
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	from, to = path.Clean(from), path.Clean(to)
	if err := m.judge(OpRename, to); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.names[from]
	if !ok {
		return notExist(OpRename, from)
	}
	delete(m.names, from)
	m.names[to] = n
	return nil
}

// MkdirAll implements FS. Directories are durable at once.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := path.Clean(dir); !m.dirs[d]; d = path.Dir(d) {
		m.dirs[d] = true
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[dir] {
		return nil, notExist("list", dir)
	}
	var out []string
	for name := range m.names {
		if path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	for name := range m.dirs {
		if path.Dir(name) == dir && name != dir {
			out = append(out, path.Base(name))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.names[name]
	if !ok {
		return Info{}, notExist("stat", name)
	}
	return Info{Size: int64(len(n.data)), ModTime: n.mod}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	dir = path.Clean(dir)
	if err := m.judge(OpSyncDir, dir); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.durable, func(name string, _ *node) bool { return path.Dir(name) == dir })
	for name, n := range m.names {
		if path.Dir(name) == dir {
			m.durable[name] = n
		}
	}
	return nil
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
	if err := f.fs.judge(OpRead, f.name); err != nil {
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
	if err := f.fs.judge(OpWrite, f.name); err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpWrite); err != nil {
		return 0, err
	}
	data := bytes.Join(bufs, nil)
	fits := len(data)
	if f.fs.capacity >= 0 {
		room := max(0, f.fs.capacity-f.fs.usedLocked())
		room += max(0, int64(len(f.node.data))-off) // what is written over
		fits = int(min(int64(fits), room))
	}
	f.grow(off + int64(fits))
	copy(f.node.data[off:], data[:fits])
	f.node.mod = f.fs.now()
	if fits < len(data) {
		return int64(fits), &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	return int64(fits), nil
}

func (f *memFile) grow(size int64) {
	if n := size - int64(len(f.node.data)); n > 0 {
		f.node.data = append(f.node.data, make([]byte, n)...)
	}
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if err := f.fs.judge(OpTruncate, f.name); err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpTruncate); err != nil {
		return err
	}
	f.grow(size)
	f.node.data = f.node.data[:size]
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.fs.judge(OpSync, f.name); err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(OpSync); err != nil {
		return err
	}
	f.node.synced = bytes.Clone(f.node.data)
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

// String lists the files and their sizes, for failing tests.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		b.WriteString(name + "\n")
	}
	return b.String()
}
