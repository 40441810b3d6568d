package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstHungRecheck follows the first call of a partition that did not end in time: it
	// may have been the election that everybody waits for.
	firstHungRecheck = time.Second
	// lastHungRecheck is as long as the wait becomes, doubled each time: partitions whose
	// calls hang must not take every worker from those whose calls do not.
	lastHungRecheck = 16 * time.Second
)

// hangs counts, for each partition, the looks in a row that ended with a call which did
// not end in time.
type hangs struct {
	mu    sync.Mutex
	inRow map[types.UID]int
}

func newHangs() *hangs { return &hangs{inRow: map[types.UID]int{}} }

// again takes note of one more, and tells how long to wait.
func (h *hangs) again(of types.UID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.inRow[of]
	h.inRow[of] = n + 1
	return min(firstHungRecheck<<min(n, 10), lastHungRecheck)
}

func (h *hangs) forget(of types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inRow, of)
}
