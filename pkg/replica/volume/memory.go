package volume

import (
	"bytes"
	"errors"
	"path/filepath"
)

// WitnessMemory holds the bytes of a witness where they outlive the process that
// writes them, and die with machine or pod.
type WitnessMemory interface {
	// Map returns the bytes that the process before left, to be written in place.
	// Fewer than size of them are an error.
	Map(size int) ([]byte, error)
	// Replace puts new bytes, zero but for what fill makes of them, in the place of
	// the old ones. A crash in the middle leaves the old ones.
	Replace(size int, fill func([]byte)) ([]byte, error)
	// Unmap ends the use of bytes that Map or Replace returned; nil is none.
	Unmap(b []byte) error
}

// tmpfsFile is the witness's file, mapped.
type tmpfsFile struct{ path string }

// onDirectory is nil, with the reason, where there can be no witness.
func onDirectory(dir string) (WitnessMemory, string) {
	if dir == "" {
		return nil, "no directory for it was given"
	}
	if err := onTmpfs(dir); err != nil {
		return nil, err.Error()
	}
	return tmpfsFile{filepath.Join(dir, witnessName)}, ""
}

func (f tmpfsFile) Map(size int) ([]byte, error) { return mapFile(f.path, size) }

func (f tmpfsFile) Replace(size int, fill func([]byte)) ([]byte, error) {
	return createMapped(f.path, size, fill)
}

func (tmpfsFile) Unmap(b []byte) error { return unmap(b) }

// PlainMemory is a WitnessMemory for simulations. Who keeps it decides what it
// outlives: hand it to the next process after a crash of the process, and a new one
// after a crash of the machine or with a new pod. The zero value is empty.
type PlainMemory struct{ b []byte }

// Map implements WitnessMemory.
func (m *PlainMemory) Map(size int) ([]byte, error) {
	if len(m.b) < size {
		return nil, errors.New("the memory is empty")
	}
	return m.b, nil
}

// Replace implements WitnessMemory.
func (m *PlainMemory) Replace(size int, fill func([]byte)) ([]byte, error) {
	b := make([]byte, size)
	fill(b)
	m.b = b
	return b, nil
}

// Unmap implements WitnessMemory.
func (*PlainMemory) Unmap([]byte) error { return nil }

// Clone is a copy as of now.
func (m *PlainMemory) Clone() *PlainMemory { return &PlainMemory{bytes.Clone(m.b)} }
