package load

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the time between two bursts of an open loop. Records of one burst are due at
// its begin.
const tick = time.Millisecond

// Open sends records at a rate, whatever becomes of them, for a time, and then waits
// for the acknowledgements. A latency is counted from when the record was due, so a
// server that stalls is charged for what it kept waiting.
func Open(ctx context.Context, producers []Producer, rate float64, v Values, duration time.Duration) (Run, error) {
	var t tally
	var open sync.WaitGroup
	before := batches(producers)
	begun := time.Now()
	// A thread of its own sleeps more exactly than a goroutine does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var sent uint64
	for step := time.Duration(1); step*tick <= duration && ctx.Err() == nil && t.failed.Load() == nil; step++ {
		due := begun.Add(step * tick)
		sleepUntil(due)
		for until := dueBy(rate, step*tick); sent < until; sent++ {
			open.Add(1)
			producers[sent%uint64(len(producers))].Produce(ctx, v.at(sent), func(err error) {
				t.add(due, err)
				open.Done()
			})
		}
	}
	open.Wait()
	return t.run(v, time.Since(begun), batches(producers)-before)
}

// dueBy is how many records are due a time after the begin.
func dueBy(rate float64, after time.Duration) uint64 {
	return uint64(math.Floor(rate*after.Seconds() + 1e-9))
}

func sleepUntil(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := unix.NsecToTimespec(d.Nanoseconds())
		_ = unix.Nanosleep(&ts, nil) // an interrupted sleep is taken up again
	}
}
