package floor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/load"
)

// Synced is what one run of appends, each with a sync, gave.
type Synced struct {
	// PerSecond is of one file: all files go on at the same rate, as replicas do.
	PerSecond float64
	Latency   *load.Histogram
}

// Sync appends size bytes and syncs them, again and again for a time, to as many files
// at once as there are replicas on this disk.
func Sync(dir string, size, files int, duration time.Duration) (Synced, error) {
	var s Synced
	s.Latency = new(load.Histogram)
	errs := make([]error, files)
	counts := make([]int, files)
	begun := time.Now()
	var all sync.WaitGroup
	for i := range files {
		all.Go(func() {
			counts[i], errs[i] = syncFile(filepath.Join(dir, fmt.Sprintf("sync-%d", i)), size, begun.Add(duration), s.Latency)
		})
	}
	all.Wait()
	elapsed := time.Since(begun)
	total := 0
	for _, n := range counts {
		total += n
	}
	s.PerSecond = float64(total) / float64(files) / elapsed.Seconds()
	return s, errors.Join(errs...)
}

func syncFile(name string, size int, until time.Time, latency *load.Histogram) (n int, err error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	buf := make([]byte, size)
	for time.Now().Before(until) {
		if _, err := f.Write(buf); err != nil {
			return n, err
		}
		at := time.Now()
		if err := f.Sync(); err != nil {
			return n, err
		}
		latency.Add(time.Since(at))
		n++
	}
	return n, nil
}
