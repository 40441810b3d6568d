package tidemark

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordfile"
)

// watchEvery is how often the file is looked at for changes. An API server tells of
// them; here a look costs less than what is measured can notice.
const watchEvery = 20 * time.Millisecond

// Records is the partition record in a file that several processes share: each takes
// the file's lock for the time of one call. The compare-and-swap is recordfile's.
type Records struct{ Dir string }

// with runs a call under the file's lock. The one error of Open that a wait lifts is
// that another process has the file.
func (r Records) with(ctx context.Context, call func(*recordfile.Store) (epoch.Snapshot, error)) (epoch.Snapshot, error) {
	for {
		s, err := recordfile.Open(r.Dir)
		if err == nil {
			defer s.Close()
			return call(s)
		}
		select {
		case <-ctx.Done():
			return epoch.Snapshot{}, err
		case <-time.After(time.Millisecond):
		}
	}
}

// Create writes the record of a new partition.
func (r Records) Create(ctx context.Context, record epoch.Record) (epoch.Snapshot, error) {
	return r.with(ctx, func(s *recordfile.Store) (epoch.Snapshot, error) { return s.Create(ctx, record) })
}

// Get implements replica.RecordStore.
func (r Records) Get(ctx context.Context) (epoch.Snapshot, error) {
	return r.with(ctx, func(s *recordfile.Store) (epoch.Snapshot, error) { return s.Get(ctx) })
}

// Update implements replica.RecordStore.
func (r Records) Update(ctx context.Context, base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error) {
	return r.with(ctx, func(s *recordfile.Store) (epoch.Snapshot, error) { return s.Update(ctx, base, next) })
}

// Watch implements replica.RecordStore.
func (r Records) Watch(ctx context.Context, onChange func(epoch.Snapshot), onError func(error)) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var seen os.FileInfo
	for {
		// The file is replaced by every write, so another write is another file.
		info, err := os.Stat(filepath.Join(r.Dir, "partition-record.json"))
		if err == nil && (seen == nil || !os.SameFile(seen, info) || !seen.ModTime().Equal(info.ModTime())) {
			var s epoch.Snapshot
			if s, err = r.Get(ctx); err == nil {
				seen = info
				onChange(s)
			}
		}
		if err != nil && ctx.Err() == nil {
			onError(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
