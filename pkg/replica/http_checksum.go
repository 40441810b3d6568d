package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/checksum"
)

// checksumRate bounds what checksums read, in bytes a second, so that clients do not feel
// them; checksumChunk is how much at a time.
const (
	checksumRate  = 64 << 20
	checksumChunk = 1 << 20
)

// errCompacted tells why there are no checksums.
var errCompacted = errors.New("the log is, or was, compacted: replicas compact for themselves, so logs that are right may differ, and are not compared")

// checksum answers GET /v1/checksum?from=&to=&step= with a line of JSON for each block
// ([checksum.Line]). All of the range must be kept and committed. One request is served at a
// time.
func (f *front) checksum(w http.ResponseWriter, req *http.Request) {
	r := f.replica.Load()
	if r == nil {
		http.Error(w, "not serving yet: "+f.phase.Load().name, http.StatusServiceUnavailable)
		return
	}
	rng, err := checksumRange(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if code, err := r.refuseChecksum(rng); err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	select {
	case f.checksums <- struct{}{}:
		defer func() { <-f.checksums }()
	default:
		http.Error(w, "another checksum is being made; try again when it is done", http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	err = r.sum(req.Context(), rng, func(b checksum.Block) error {
		return errors.Join(lines.Encode(checksum.Line{Block: &b}), flush.Flush())
	})
	end := checksum.Line{Done: true}
	if err != nil {
		end = checksum.Line{Error: err.Error()}
	}
	_ = lines.Encode(end) // who asked may be gone
}

func checksumRange(req *http.Request) (checksum.Range, error) {
	var n [3]int64
	for i, name := range []string{"from", "to", "step"} {
		v, err := strconv.ParseInt(req.URL.Query().Get(name), 10, 64)
		if err != nil {
			return checksum.Range{}, fmt.Errorf("/v1/checksum needs from, to and step as numbers: %s is %q", name, req.URL.Query().Get(name))
		}
		n[i] = v
	}
	r := checksum.Range{From: epoch.Offset(n[0]), To: epoch.Offset(n[1]), Step: n[2]}
	return r, r.Check()
}

// refuseChecksum says why a range cannot be summed up, and by which HTTP status.
func (r *Replica) refuseChecksum(rng checksum.Range) (int, error) {
	l, v := r.node.Log(), r.view()
	switch {
	case r.settings.Load().Cleanup.Compacts() || l.CleanedOffset() > 0:
		return http.StatusConflict, errCompacted
	case rng.From < l.StartOffset():
		return http.StatusRequestedRangeNotSatisfiable, fmt.Errorf("offset %d is not kept any more; the log starts at %d", rng.From, l.StartOffset())
	case rng.To > v.HighWatermark:
		return http.StatusRequestedRangeNotSatisfiable, fmt.Errorf("offset %d is not known to be committed here yet; the high watermark is %d", rng.To, v.HighWatermark)
	}
	return 0, nil
}

func (r *Replica) sum(ctx context.Context, rng checksum.Range, emit func(checksum.Block) error) error {
	limit, pacer := r.view().HighWatermark, newPacer(ctx, checksumRate)
	read := func(from epoch.Offset) ([]byte, func(), error) {
		loan, err := r.node.Log().Lend(from, limit, checksumChunk, true)
		if err != nil {
			r.noteDamage(err)
			return nil, nil, err
		}
		if err := pacer.pace(int64(len(loan.Records))); err != nil {
			loan.Return()
			return nil, nil, err
		}
		return loan.Records, loan.Return, nil
	}
	return checksum.Sum(rng, read, emit)
}
