package vfs

import (
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mem is a file system in memory that knows what a power cut would leave. The zero
// value is not usable: see NewMem.
//
// A crash of the process that uses it leaves it as it is: go on with the same Mem,
// which still knows what is not durable.
type Mem struct {
	mu sync.Mutex
	// names are the files by path as a program sees them, durable as the last SyncDir
	// of each directory left them, and pending what has happened to names since.
	names, durable map[string]*node
	dirs           map[string]bool
	pending        []naming
	group          int

	fault    func(Op) error
	capacity int64
	used     int64 // bytes of the files that have a name
	now      func() time.Time
}

// naming is one change of a directory that is not durable: a file or directory got
// a name, or a name went. Those of one group happen together or not at all.
type naming struct {
	group     int
	name      string
	file      *node // nil: the name goes, or is a directory's
	directory bool
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

// Op is one operation on the file of that name; of a rename, the new one.
type Op struct {
	Kind OpKind
	Name string
	// Bytes is how many a write has.
	Bytes int64
}

// NewMem returns an empty file system with the root directory only.
func NewMem() *Mem {
	return &Mem{
		names: map[string]*node{}, durable: map[string]*node{},
		dirs: map[string]bool{"/": true, ".": true}, capacity: -1, now: time.Now,
	}
}

// SetClock sets the clock that modification times come from; time.Now is the default.
func (m *Mem) SetClock(now func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
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
	return m.used
}

// split is path.Dir and path.Base of a clean name.
func split(name string) (dir, base string) {
	switch i := strings.LastIndexByte(name, '/'); i {
	case -1:
		return ".", name
	case 0:
		return "/", name[1:]
	default:
		return name[:i], name[i+1:]
	}
}

func notExist(op OpKind, name string) error {
	return &fs.PathError{Op: string(op), Path: name, Err: fs.ErrNotExist}
}

// link gives a file a name, in place of what has it.
func (m *Mem) link(name string, n *node) {
	m.unlink(name)
	n.links++
	m.used += int64(len(n.data))
	m.names[name] = n
}

func (m *Mem) unlink(name string) {
	if n := m.names[name]; n != nil {
		n.links--
		m.used -= int64(len(n.data))
		delete(m.names, name)
	}
}

// note remembers changes of names until their directories are synced.
func (m *Mem) note(changes ...naming) {
	m.group++
	for _, c := range changes {
		c.group = m.group
		m.pending = append(m.pending, c)
	}
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	name = path.Clean(name)
	if err := m.judge(Op{Kind: OpOpen, Name: name}); err != nil {
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
	if err := m.judge(Op{Kind: OpCreate, Name: name}); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[path.Dir(name)] {
		return nil, notExist(OpCreate, name)
	}
	n, ok := m.names[name]
	if ok {
		m.resize(n, 0)
	} else {
		n = &node{}
		m.link(name, n)
		m.note(naming{name: name, file: n})
	}
	n.mod = m.now()
	return &memFile{fs: m, node: n, name: name}, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	name = path.Clean(name)
	if err := m.judge(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.names[name]; !ok {
		return notExist(OpRemove, name)
	}
	m.unlink(name)
	m.note(naming{name: name})
	return nil
}

// Rename implements FS. A directory is renamed with all that it holds, durably at once.
func (m *Mem) Rename(from, to string) error {
	from, to = path.Clean(from), path.Clean(to)
	if err := m.judge(Op{Kind: OpRename, Name: to}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirs[from] {
		m.renameDir(from, to)
		return nil
	}
	n, ok := m.names[from]
	if !ok || !m.dirs[path.Dir(to)] {
		return notExist(OpRename, from)
	}
	if from == to {
		return nil
	}
	m.unlink(from)
	m.link(to, n)
	m.note(naming{name: to, file: n}, naming{name: from})
	return nil
}

func (m *Mem) renameDir(from, to string) {
	moved := func(name string) string {
		if name == from || strings.HasPrefix(name, from+"/") {
			return to + name[len(from):]
		}
		return name
	}
	for _, files := range []*map[string]*node{&m.names, &m.durable} {
		next := make(map[string]*node, len(*files))
		for name, n := range *files {
			next[moved(name)] = n
		}
		*files = next
	}
	dirs := make(map[string]bool, len(m.dirs))
	for name := range m.dirs {
		dirs[moved(name)] = true
	}
	m.dirs = dirs
	for i, c := range m.pending {
		m.pending[i].name = moved(c.name)
	}
	m.pending = slices.DeleteFunc(m.pending, func(c naming) bool { return c.directory && c.name == to })
}

// MkdirAll implements FS. A directory at the root is a mount point, and durable.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var made []naming
	for d := path.Clean(dir); !m.dirs[d]; d = path.Dir(d) {
		m.dirs[d] = true
		if parent := path.Dir(d); parent != "/" && parent != "." {
			made = append(made, naming{name: d, directory: true})
		}
	}
	slices.Reverse(made)
	for _, d := range made {
		m.note(d)
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
		if in, base := split(name); in == dir {
			out = append(out, base)
		}
	}
	for name := range m.dirs {
		if in, base := split(name); in == dir && name != dir {
			out = append(out, base)
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
	if err := m.judge(Op{Kind: OpSyncDir, Name: dir}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.DeleteFunc(m.pending, func(c naming) bool {
		if in, _ := split(c.name); in != dir {
			return false
		}
		c.apply(m.durable)
		return true
	})
	return nil
}

// Space implements FS.
func (m *Mem) Space(string) (Space, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capacity < 0 {
		return Space{math.MaxInt64, math.MaxInt64}, nil
	}
	return Space{max(0, m.capacity-m.used), m.capacity}, nil
}

// apply makes the change in a set of files by name.
func (c naming) apply(files map[string]*node) {
	switch {
	case c.directory:
	case c.file == nil:
		delete(files, c.name)
	default:
		files[c.name] = c.file
	}
}

// String lists the files, for failing tests.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		b.WriteString(name + "\n")
	}
	return b.String()
}
