//go:build !linux

package vfs

import "math"

// WriteVec implements File with one write for each buffer.
func (f osFile) WriteVec(bufs [][]byte, off int64) (int64, error) { return f.writeEach(bufs, off) }

// Allocate implements File: the file is only made longer.
func (f osFile) Allocate(size int64) error { return f.atLeast(size) }

// Space implements FS: no limit is known.
func (OS) Space(string) (Space, error) { return Space{math.MaxInt64, math.MaxInt64}, nil }
