package vfs

import (
	"fmt"
	"io/fs"
	"strings"
)

// SetFault makes f judge every operation before it is done: an error is returned to
// the caller and nothing is done, but for [Short] and [Dropped]. Nil ends it. f may use
// the file system. It may panic, too, which is how a test kills a process at that very
// operation: Mem holds no lock meanwhile.
func (m *Mem) SetFault(f func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *Mem) judge(op Op) error {
	m.mu.Lock()
	f := m.fault
	m.mu.Unlock()
	if f == nil {
		return nil
	}
	if err := f(op); err != nil {
		return &fs.PathError{Op: string(op.Kind), Path: op.Name, Err: err}
	}
	return nil
}

// Short is the error of a write of which only the first bytes are done.
type Short struct {
	Bytes int64
	Err   error
}

func (s *Short) Error() string { return fmt.Sprintf("after %d bytes: %v", s.Bytes, s.Err) }

// Unwrap gives the reason.
func (s *Short) Unwrap() error { return s.Err }

// Dropped is the error of a sync whose dirty pages are then taken for clean: reads
// still return them, the next sync succeeds, and a crash may show that they never
// reached the disk.
type Dropped struct{ Err error }

func (d *Dropped) Error() string { return d.Err.Error() }

// Unwrap gives the reason.
func (d *Dropped) Unwrap() error { return d.Err }

// Fault makes operations fail.
type Fault struct {
	// Kind is the operation, any if empty; Name is what the file's name contains.
	Kind OpKind
	Name string
	// After is how many operations succeed before; Times how many fail then, 0 for all.
	After, Times int
	// Err is what they fail with.
	Err error

	seen int
}

// Faults is a set of them, to be given to [Mem.SetFault] as its Judge. It is not safe
// for several goroutines.
type Faults []*Fault

// Judge returns the error of the first fault that an operation meets.
func (f Faults) Judge(op Op) error {
	for _, x := range f {
		if x.Kind != "" && x.Kind != op.Kind || !strings.Contains(op.Name, x.Name) {
			continue
		}
		x.seen++
		if n := x.seen - x.After; n > 0 && (x.Times == 0 || n <= x.Times) {
			return x.Err
		}
	}
	return nil
}
