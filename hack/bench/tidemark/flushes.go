package tidemark

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
)

// flushCount is the metric of a replica that counts its syncs of the log.
const flushCount = "tidemark_log_flush_seconds_count "

// Flushes implements system.Log.
func (l *partition) Flushes(ctx context.Context, server int) (uint64, bool) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address(server, 2)+"/metrics", nil)
	if err != nil {
		return 0, false
	}
	got, err := http.DefaultClient.Do(ask)
	if err != nil {
		return 0, false
	}
	defer got.Body.Close()
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), flushCount); ok {
			n, err := strconv.ParseFloat(value, 64)
			return uint64(n), err == nil
		}
	}
	return 0, false
}
