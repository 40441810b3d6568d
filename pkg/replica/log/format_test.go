package log

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// A directory as Kafka would have it after the same writes; every expected byte is
// written down from the formats' descriptions.
func TestDirectoryIsKafkasByteForByte(t *testing.T) {
	m := newMem(t)
	cfg := smallSegments(4)
	l, _ := open(t, m, cfg, true)
	must(t, l.AssignEpoch(3))
	appendOne(t, l, 3, 0, 1)
	must(t, l.AssignEpoch(5))
	appendOne(t, l, 5, 2, 3, 4)
	_, err := l.Append(5, []batch.Batch{batch.NewBuilder().Producer(7, 2, 10).Record(2000, nil, []byte("a")).Record(2001, nil, []byte("b")).Build()})
	must(t, err)
	must(t, l.Close())
	must(t, l.Checkpoint(5))

	if got, want := files(t, m, ""), []string{
		"00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex",
		"00000000000000000004.index", "00000000000000000004.log", "00000000000000000004.snapshot", "00000000000000000004.timeindex",
		"00000000000000000007.snapshot", "leader-epoch-checkpoint", "partition.metadata",
	}; !slices.Equal(got, want) {
		t.Errorf("files:\n%q\nwant\n%q", got, want)
	}
	for name, want := range map[string]string{
		"replication-offset-checkpoint":     "0\n1\norders 0 5\n",
		"recovery-point-offset-checkpoint":  "0\n1\norders 0 7\n",
		"orders-0/leader-epoch-checkpoint":  "0\n2\n3 0\n5 2\n",
		"orders-0/partition.metadata":       "version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA",
		"orders-0/00000000000000000004.log": string(slices.Concat(fetched(one(4), 4, 5), fetched(batch.NewBuilder().Producer(7, 2, 10).Record(2000, nil, []byte("a")).Record(2001, nil, []byte("b")).Build(), 5, 5))),
		"orders-0/00000000000000000000.log": string(slices.Concat(fetched(one(0), 0, 3), fetched(one(1), 1, 3), fetched(one(2), 2, 5), fetched(one(3), 3, 5))),
		// A batch is 72 bytes, the interval too: the entry of the third batch is the
		// first that has more than the interval before it.
		"orders-0/00000000000000000000.index":     unhex("00000002 00000090"),
		"orders-0/00000000000000000000.timeindex": unhex("00000000000003ea 00000002", "00000000000003eb 00000003"),
		"orders-0/00000000000000000004.index":     "",
		"orders-0/00000000000000000004.timeindex": unhex("00000000000007d1 00000002"),
		"orders-0/00000000000000000004.snapshot":  unhex("0001 48674bc7 00000000"),
		"orders-0/00000000000000000007.snapshot": unhex("0001 8a6cc147 00000001",
			"0000000000000007 0002 0000000b 0000000000000006 00000001 00000000000007d1 ffffffff ffffffffffffffff"),
	} {
		if got := content(t, m, dataDir+"/"+name); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s:\n%x\nwant\n%x", name, got, want)
		}
	}
	if len(one(0)) != 72 {
		t.Errorf("a batch has %d bytes", len(one(0)))
	}
}

func unhex(parts ...string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(parts, ""), " ", ""))
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestCheckpointKeepsOtherPartitions(t *testing.T) {
	m := newMem(t)
	overwrite(t, m, dataDir+"/"+highWatermarkFile, []byte("0\n2\nother 3 9\norders 0 1\n"))
	l, _ := open(t, m, config(), true)
	appendOne(t, l, 0, 0, 1, 2)
	if hw := l.CheckpointedHighWatermark(); hw != 1 {
		t.Fatalf("checkpointed high watermark %d, want 1", hw)
	}
	must(t, l.Checkpoint(2))
	if got := string(content(t, m, dataDir+"/"+highWatermarkFile)); got != "0\n2\norders 0 2\nother 3 9\n" {
		t.Fatalf("file: %q", got)
	}
}

// H27: a half-written checkpoint is no reason not to start.
func TestBrokenCheckpointsReadAsUnknown(t *testing.T) {
	for _, text := range []string{"", "0", "0\n", "0\n1\n", "1\n1\norders 0 2\n", "0\n2\norders 0 2\n", "0\n1\norders 0 x\n",
		"0\n1\norders 0 -2\n", "0\n1\norders 0 2", "0\n1\norders 0\n", "\x00\x00\x00"} {
		m := newMem(t)
		l, _ := open(t, m, config(), true)
		appendOne(t, l, 0, upTo(3)...)
		must(t, l.Close())
		for _, name := range []string{highWatermarkFile, recoveryPointFile, logStartFile} {
			overwrite(t, m, dataDir+"/"+name, []byte(text))
		}
		l, r := open(t, m, config(), false)
		wantOffsets(t, l, 0, 3)
		if hw := l.CheckpointedHighWatermark(); hw != 0 || r.HighWatermark != epoch.NoOffset || l.FlushedOffset() != 0 {
			t.Errorf("%q: high watermark %d (%d), flushed %d; want 0", text, hw, r.HighWatermark, l.FlushedOffset())
		}
	}
}

func TestTopicID(t *testing.T) {
	other := config()
	other.TopicID = epoch.UUID{9}
	for _, tc := range []struct {
		name  string
		spoil func(m *vfs.Mem)
		cfg   Config
		ok    bool
	}{
		{"same", func(*vfs.Mem) {}, config(), true},
		{"another topic id (D32)", func(*vfs.Mem) {}, other, false},
		{"missing beside data (D33)", func(m *vfs.Mem) { must(t, m.Remove(in(metadataFile))) }, config(), false},
		{"garbage", func(m *vfs.Mem) { overwrite(t, m, in(metadataFile), []byte("version: 1\n")) }, config(), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMem(t)
			l, _ := open(t, m, config(), true)
			appendOne(t, l, 0, 0)
			must(t, l.Close())
			tc.spoil(m)
			_, _, err := Open(m, dataDir, tc.cfg, true, l.log)
			if tc.ok != (err == nil) || !tc.ok && !isErr(err, ErrTopicID) {
				t.Fatalf("got %v", err)
			}
		})
	}
}
