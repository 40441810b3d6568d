package kafka

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/replica/log"
	"github.com/tidemark-io/tidemark/pkg/replica/logtool"
)

// line is a line of `replica log dump --json`, of any kind.
type line struct {
	Kind, File                                  string
	Topic                                       string
	Position, BaseOffset, LastOffset            int64
	Count, LeaderEpoch                          int32
	ProducerID                                  int64 `json:"producerId"`
	ProducerEpoch                               int16
	BaseSequence, LastSequence                  int32
	Codec, TimestampType                        string
	MaxTimestamp                                int64
	Size                                        int
	CRC                                         uint32 `json:"crc"`
	CRCValid                                    bool   `json:"crcValid"`
	Magic                                       int8
	Transactional, Control                      bool
	DeleteHorizon                               *int64
	Offset, Timestamp, OffsetDelta, StartOffset int64
	Key, Value, KeyBase64, ValueBase64          *string
	Headers                                     []struct{ Key string }
	Producers                                   int
	CoordinatorEpoch                            int32
	TransactionStart                            int64
}

// dumped is what `replica log dump --json --records` prints of a directory.
func dumped(t *testing.T, dir string) []line {
	t.Helper()
	in, _, err := logtool.Find(dir)
	must(t, err)
	var b bytes.Buffer
	must(t, logtool.Dump(&b, in, logtool.DumpOptions{JSON: true, Records: true}))
	var out []line
	for dec := json.NewDecoder(&b); dec.More(); {
		var l line
		must(t, dec.Decode(&l))
		if l.Kind == "damage" {
			t.Errorf("%s: damage: %+v", dir, l)
		}
		out = append(out, l)
	}
	return out
}

// ours is what DumpLogSegments should print of a directory, file by file, made of what
// `replica log dump` prints.
func ours(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	in, path, err := logtool.Find(dir)
	must(t, err)
	for _, name := range in.Names {
		if segmentFile.MatchString(name) {
			out[filepath.Join(path, name)] = nil
		}
	}
	var b line // the batch that the next records are of
	for _, l := range dumped(t, dir) {
		file := filepath.Join(path, l.File)
		add := func(format string, args ...any) { out[file] = append(out[file], fmt.Sprintf(format, args...)) }
		switch l.Kind {
		case "segment":
			add("Log starting offset: %d", l.BaseOffset)
		case "batch":
			b = l
			add("%s", batchLine(l))
		case "record":
			file = filepath.Join(path, b.File)
			add("%s", recordLine(b, l))
		case "offsetIndex":
			add("offset: %d position: %d", l.Offset, l.Position)
		case "timeIndex":
			add("timestamp: %d offset: %d", l.Timestamp, l.Offset)
		case "producer":
			add("%s", producerLine(l))
		}
	}
	return out
}

func optional(n int64) string {
	if n < 0 {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", n)
}

func timestampName(b line) string {
	if b.TimestampType == "create" {
		return "CreateTime"
	}
	return "LogAppendTime"
}

func batchLine(l line) string {
	horizon := int64(-1)
	if l.DeleteHorizon != nil {
		horizon = *l.DeleteHorizon
	}
	return fmt.Sprintf("baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t",
		l.BaseOffset, l.LastOffset, l.Count, l.BaseSequence, l.LastSequence, l.ProducerID, l.ProducerEpoch, l.LeaderEpoch, l.Transactional, l.Control,
		optional(horizon), l.Position, timestampName(l), l.MaxTimestamp, l.Size, l.Magic, l.Codec, l.CRC, l.CRCValid)
}

func producerLine(l line) string {
	s := fmt.Sprintf("producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d",
		l.ProducerID, l.ProducerEpoch, l.CoordinatorEpoch, optional(l.TransactionStart), l.Timestamp)
	if l.LastSequence < 0 { // nothing in this epoch yet
		return s
	}
	first := (int64(l.LastSequence) - l.OffsetDelta) & 0x7fffffff
	return s + fmt.Sprintf(" firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d", first, l.LastSequence, l.LastOffset, l.OffsetDelta, l.Timestamp)
}

func recordLine(b, r line) string {
	key, value := field(r.Key, r.KeyBase64), field(r.Value, r.ValueBase64)
	sequence := int64(-1)
	if b.BaseSequence >= 0 {
		sequence = (int64(b.BaseSequence) + r.Offset - b.BaseOffset) & 0x7fffffff
	}
	var headers []string
	for _, h := range r.Headers {
		headers = append(headers, h.Key)
	}
	s := fmt.Sprintf("| offset: %d %s: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%s]", r.Offset, timestampName(b), r.Timestamp, size(key), size(value), sequence, strings.Join(headers, ","))
	if b.Control { // version and type; version and the coordinator's epoch
		kinds := map[byte]string{0: "ABORT", 1: "COMMIT"}
		return s + fmt.Sprintf(" endTxnMarker: %s coordinatorEpoch: %d", kinds[key[3]], binary.BigEndian.Uint32(value[2:]))
	}
	if key != nil {
		s += " key: " + javaText(key)
	}
	if value != nil {
		s += " payload: " + javaText(value)
	}
	return s
}

// javaText is bytes as Java decodes them.
func javaText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func field(text, b64 *string) []byte {
	switch {
	case text != nil:
		return []byte(*text)
	case b64 != nil:
		b, _ := base64.StdEncoding.DecodeString(*b64)
		return b
	}
	return nil
}

func size(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// segmentFile is what DumpLogSegments reads.
var segmentFile = regexp.MustCompile(`^[0-9]{20}\.(log|index|timeindex|snapshot)$`)

// dumpLogSegments runs Kafka's tool and returns what it prints, by file, and what it
// complains of.
func dumpLogSegments(t *testing.T, files []string, flags ...string) (map[string][]string, []string) {
	t.Helper()
	c := script(t, append([]string{"class", "org.apache.kafka.tools.DumpLogSegments", "--files", strings.Join(files, ",")}, flags...)...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("DumpLogSegments: %v\n%s%s", err, &stdout, &stderr)
	}
	out := map[string][]string{}
	file := ""
	for _, l := range linesOf(stdout.String()) {
		if name, ok := strings.CutPrefix(l, "Dumping "); ok {
			file = name
			out[file] = nil
			continue
		}
		if l != file+" is empty." {
			out[file] = append(out[file], l)
		}
	}
	return out, complaints(linesOf(stderr.String()))
}

// complaints leaves out that a segment does not begin at offset 0, which this version
// reports of every other segment, Kafka's own too:
//
//	Non-consecutive offsets in FILE
//	  -1 is followed by 100
func complaints(lines []string) []string {
	var out []string
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if i+1 < len(lines) && strings.HasPrefix(l, "Non-consecutive offsets in ") {
			base, _, _ := strings.Cut(filepath.Base(l), ".")
			var offset int64
			_, _ = fmt.Sscan(strings.TrimLeft(base, "0"), &offset)
			if strings.TrimSpace(lines[i+1]) == fmt.Sprintf("-1 is followed by %d", offset) {
				i++
				continue
			}
		}
		if strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

// agree demands that Kafka reads in the directories exactly what Tidemark reads, and that
// none of its checks complains.
func agree(t *testing.T, dirs ...string) {
	t.Helper()
	agreeBut(t, "", dirs...)
}

// agreeBut is agree for files with complaints that begin with certain words.
func agreeBut(t *testing.T, complaint string, dirs ...string) {
	t.Helper()
	want := map[string][]string{}
	for _, dir := range dirs {
		for file, lines := range ours(t, dir) {
			want[file] = lines
		}
	}
	var files, indexes []string
	for file := range want {
		files = append(files, file)
		if strings.HasSuffix(file, "index") {
			indexes = append(indexes, file)
		}
	}
	slices.Sort(files)
	slices.Sort(indexes)
	got, bad := dumpLogSegments(t, files, "--deep-iteration", "--print-data-log")
	if len(bad) > 0 && (complaint == "" || !strings.HasPrefix(bad[0], complaint)) {
		t.Errorf("Kafka complains of the files:\n%s", strings.Join(bad, "\n"))
	}
	for _, file := range files {
		compareLines(t, file, got[file], want[file])
	}
	if _, bad := dumpLogSegments(t, indexes, "--verify-index-only"); len(bad) > 0 {
		t.Errorf("Kafka complains of the indexes:\n%s", strings.Join(bad, "\n"))
	}
	sane, bad := dumpLogSegments(t, indexes, "--index-sanity-check")
	if len(bad) > 0 {
		t.Errorf("Kafka complains of the indexes:\n%s", strings.Join(bad, "\n"))
	}
	for _, file := range indexes {
		if len(want[file]) > 0 { // of an empty one it says nothing
			compareLines(t, file, sane[file], []string{file + " passed sanity check."})
		}
	}
}

func compareLines(t *testing.T, file string, kafka, tidemark []string) {
	t.Helper()
	if slices.Equal(kafka, tidemark) {
		return
	}
	i := 0
	for i < len(kafka) && i < len(tidemark) && kafka[i] == tidemark[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(nothing)"
	}
	t.Errorf("%s: Kafka reads %d lines, Tidemark %d; the first that differs:\nKafka:    %s\nTidemark: %s", file, len(kafka), len(tidemark), at(kafka), at(tidemark))
}

// sound demands that `replica log verify` finds no error, and returns what it warns of.
func sound(t *testing.T, dir string) []string {
	t.Helper()
	in, path, err := logtool.Find(dir)
	must(t, err)
	var warnings []string
	_, err = log.Verify(in, func(f log.Finding) {
		if f.Severity == log.Error {
			t.Errorf("%s: %s", path, f)
		}
		warnings = append(warnings, f.String())
	})
	must(t, err)
	return warnings
}
