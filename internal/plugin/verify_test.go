package plugin

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// fill writes a hundred records, one batch each, and waits until all of them are committed
// everywhere.
func (p *partition) fill() {
	p.t.Helper()
	client := p.client()
	for range 100 {
		if err := client.ProduceSync(p.t.Context(), kgo.StringRecord("a record like any other")).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
	}
	p.awaitCommitted(100)
}

// forge gives a batch of a replica's log another content, with a checksum that fits: what no
// replica could find out by itself. The replica stops for it.
func (p *partition) forge(id int, offset epoch.Offset) {
	p.t.Helper()
	p.stop(id)
	name := filepath.Join(p.members[id].cfg.DataDir, "orders-0", "00000000000000000000.log")
	all, err := os.ReadFile(name)
	if err != nil {
		p.t.Fatal(err)
	}
	for rest := all; len(rest) > 0; {
		b, next, err := batch.Next(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		if b.BaseOffset() <= offset && offset <= b.LastOffset() {
			b[len(b)-2] ^= 1 // in the last record's value
			binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
		}
		rest = next
	}
	if err := os.WriteFile(name, all, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.start(id)
	p.awaitInSync()
	p.awaitCommitted(100)
}

func TestVerifyFindsEqualLogsAndNamesTheFirstBatchThatDiffers(t *testing.T) {
	p := newPartition(t, 3)
	ns := p.rp.Namespace
	p.fill()
	out := mustRun(t, ns, "", "verify", "orders")
	if strings.Count(out, "same") != 3 || !strings.Contains(out, "Offsets 0 to 100") {
		t.Errorf("equal logs:\n%s", out)
	}
	follower := int(p.record().Leader+1) % 3
	p.forge(follower, 70)
	p.forge(follower, 42)
	out, errOut, code := run(t, ns, "", "verify", "orders")
	if code != 1 || errOut != "" || strings.Count(out, "as most") != 2 || strings.Count(out, "DIFFERS") != 1 || !strings.Contains(out, "differ first between the offsets 42 and 43") {
		t.Errorf("exit status %d:\n%s%s", code, out, errOut)
	}
	if line := lineWith(out, "DIFFERS"); !strings.HasPrefix(line, p.rp.ReplicaName(int32(follower))) {
		t.Errorf("replica %d was forged, and this is said: %s", follower, line)
	}
	if out := mustRun(t, ns, "", "verify", "orders", "--from", "43", "--to", "70"); strings.Count(out, "same") != 3 {
		t.Errorf("between the two:\n%s", out)
	}
	mustFail(t, ns, "only offsets from 0 to 100 are in all logs", "verify", "orders", "--to", "101")
	p.stop(follower)
	out, _, code = run(t, ns, "", "verify", "orders")
	if code != 1 || strings.Count(out, "not compared") != 1 || strings.Count(out, "same") != 2 {
		t.Errorf("one replica is away: exit status %d:\n%s", code, out)
	}
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

func TestVerifyRefusesCompactedLogs(t *testing.T) {
	p := newObject(t, func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Log.CleanupPolicy = v1alpha1.CleanupCompact })
	mustFail(t, p.rp.Namespace, "replicas compact for themselves", "verify", "orders")
}
