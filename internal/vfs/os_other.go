//go:build !linux

package vfs

// WriteVec implements File with one write for each buffer.
func (f osFile) WriteVec(bufs [][]byte, off int64) (int64, error) { return f.writeEach(bufs, off) }
