package load

import (
	"math/bits"
	"sync"
	"time"
)

// Each power of two is cut into subBuckets, so a value is kept within 1/subBuckets of
// itself.
const (
	subBits    = 6
	subBuckets = 1 << subBits
)

// Histogram counts durations. Its methods are safe for several goroutines.
type Histogram struct {
	mu     sync.Mutex
	counts [(64 - subBits + 1) * subBuckets]uint32
	total  uint64
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	i := bucket(uint64(max(d, 0)))
	h.mu.Lock()
	h.counts[i]++
	h.total++
	h.mu.Unlock()
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	h.mu.Lock()
	defer h.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// Quantile is the duration that the share q of all counted ones does not exceed, and 0
// if there is none. It is never below the true one.
func (h *Histogram) Quantile(q float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total == 0 {
		return 0
	}
	rank := uint64(q*float64(h.total) + 0.9999999)
	var seen uint64
	for i, n := range h.counts {
		if seen += uint64(n); n > 0 && seen >= rank {
			return time.Duration(highest(i))
		}
	}
	return 0
}

// bucket numbers the values: those below subBuckets have a bucket each.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	if shift == 0 {
		return int(v)
	}
	return shift*subBuckets + int(v>>shift)
}

// highest is the largest value of a bucket.
func highest(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return (uint64(i-shift*subBuckets)+1)<<shift - 1
}
