package kafka

import (
	"math/bits"
	"sync"
)

// Buffers are pooled in classes of powers of two. What is larger than the largest
// class is left to the garbage collector: keeping it would hold memory that a rare
// request needed once.
const (
	minBufferBits = 12 // 4 KiB
	maxBufferBits = 20 // 1 MiB
)

var bufferPools [maxBufferBits - minBufferBits + 1]sync.Pool

func bufferClass(n int) int {
	if n <= 1<<minBufferBits {
		return 0
	}
	return bits.Len(uint(n-1)) - minBufferBits
}

// getBuffer returns a buffer of length n with arbitrary content.
func getBuffer(n int) []byte {
	class := bufferClass(n)
	if class >= len(bufferPools) {
		return make([]byte, n)
	}
	if p, ok := bufferPools[class].Get().(*[]byte); ok {
		return (*p)[:n]
	}
	return make([]byte, n, 1<<(class+minBufferBits))
}

// putBuffer gives a buffer back. The caller keeps no slice of it.
func putBuffer(b []byte) {
	class := bufferClass(cap(b))
	if class >= len(bufferPools) || cap(b) != 1<<(class+minBufferBits) {
		return
	}
	b = b[:cap(b)]
	bufferPools[class].Put(&b)
}
