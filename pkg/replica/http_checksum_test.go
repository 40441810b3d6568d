package replica

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/checksum"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// sums asks a replica for checksums.
func (c *cluster) sums(id int, query string) (lines []checksum.Line, status int, body string) {
	c.t.Helper()
	resp, err := http.Get("http://" + c.members[id].cfg.HTTPListen + "/v1/checksum?" + query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode, string(b)
	}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var l checksum.Line
		if err := d.Decode(&l); err != nil {
			c.t.Fatalf("%v in %s", err, b)
		}
		lines = append(lines, l)
	}
	return lines, resp.StatusCode, string(b)
}

// serveHTTP gives every replica an HTTP port; the cluster is started afterwards.
func (c *cluster) serveHTTP() {
	for _, m := range c.members {
		m.cfg.HTTPListen = fmt.Sprintf("127.0.0.1:%d", freePort(c.t))
	}
}

func TestChecksumsOfEqualLogsAreEqualWhereverSegmentsBegin(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	c.serveHTTP()
	for id, m := range c.members {
		m.cfg.Settings.SegmentBytes = int64(1+id) << 20
	}
	c.start(0, 1, 2)
	c.awaitInSync()
	client := c.producer()
	for i := range 40 {
		c.produce(client, strings.Repeat(fmt.Sprint(i%10), 100<<10))
	}
	c.await("every replica to know that all is committed", func(r epoch.Record) bool {
		for _, p := range r.Progress.Replicas {
			if p.HighWatermark != 40 {
				return false
			}
		}
		return len(r.Progress.Replicas) == 3
	})
	want, _, text := c.sums(0, "from=3&to=40&step=7")
	if len(want) != 7 || !want[6].Done || want[5].To != 40 || want[5].Last != 39 || want[0].Records != 7 {
		t.Fatalf("six blocks up to 40 were asked for; got %s", text)
	}
	for id := 1; id < 3; id++ {
		if _, _, got := c.sums(id, "from=3&to=40&step=7"); got != text {
			t.Errorf("replica %d answers\n%s, replica 0\n%s", id, got, text)
		}
	}
}

func TestChecksumsThatAreRefused(t *testing.T) {
	c := newTestCluster(t, 1, 1)
	c.serveHTTP()
	c.start(0)
	c.awaitInSync()
	c.produce(c.producer(), "one", "two", "three")
	for query, want := range map[string]struct {
		status int
		text   string
	}{
		"":                         {http.StatusBadRequest, "needs from, to and step"},
		"from=0&to=3&step=x":       {http.StatusBadRequest, `step is "x"`},
		"from=3&to=1&step=1":       {http.StatusBadRequest, "no range"},
		"from=0&to=9000000&step=1": {http.StatusBadRequest, "more than"},
		"from=0&to=4&step=1":       {http.StatusRequestedRangeNotSatisfiable, "high watermark is 3"},
	} {
		if _, status, body := c.sums(0, query); status != want.status || !strings.Contains(body, want.text) {
			t.Errorf("%q: status %d: %s; want %d with %q", query, status, body, want.status, want.text)
		}
	}
}

func TestACompactedLogHasNoChecksums(t *testing.T) {
	c := newTestCluster(t, 1, 1)
	c.serveHTTP()
	c.members[0].cfg.Settings.Cleanup = node.CleanupCompact
	c.start(0)
	c.awaitInSync()
	if _, status, body := c.sums(0, "from=0&to=0&step=1"); status != http.StatusConflict || !strings.Contains(body, "compact") {
		t.Errorf("status %d: %s", status, body)
	}
}
