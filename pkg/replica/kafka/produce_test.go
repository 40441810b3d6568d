package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// edited is a batch with bytes changed after it was built, and its checksum put
// right again.
func edited(b batch.Batch, edit func(b batch.Batch)) batch.Batch {
	edit(b)
	binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
	return b
}

func TestProduceAcceptsOrRefusesBatches(t *testing.T) {
	zstd := batch.NewBuilder().Codec(batch.CodecZstd).Values("a").Build()
	twoRecords := batchOf("a", "b")
	cases := map[string]struct {
		version int16
		acks    int16
		records []byte
		want    Code
	}{
		"good batch":                              {9, AcksAll, batchOf("a"), CodeNone},
		"oldest version served":                   {3, AcksAll, batchOf("a"), CodeNone},
		"newest version served":                   {12, AcksLeader, batchOf("a"), CodeNone},
		"G01 version that is only advertised":     {2, AcksAll, batchOf("a"), CodeUnsupportedVersion},
		"G01 oldest version that is advertised":   {0, AcksAll, batchOf("a"), CodeUnsupportedVersion},
		"acks beyond one":                         {9, 2, batchOf("a"), CodeInvalidRequiredAcks},
		"no records":                              {9, AcksAll, nil, CodeInvalidRecord},
		"G07 base offset other than 0":            {9, AcksAll, batch.NewBuilder().BaseOffset(7).Values("a").Build(), CodeInvalidRecord},
		"G07 leader epoch 0, as sarama sends":     {9, AcksAll, batch.NewBuilder().LeaderEpoch(0).Values("a").Build(), CodeNone},
		"G08 two batches":                         {9, AcksAll, slices.Concat(batchOf("a"), batchOf("b")), CodeInvalidRecord},
		"G09 wrong checksum":                      {9, AcksAll, flipped(batchOf("a"), 17), CodeCorruptMessage},
		"G10 zstd before version 7":               {6, AcksAll, zstd, CodeUnsupportedCompression},
		"G10 zstd from version 7 on":              {7, AcksAll, zstd, CodeNone},
		"G11 count that does not fit":             {9, AcksAll, edited(batchOf("a"), func(b batch.Batch) { binary.BigEndian.PutUint32(b[23:], 5) }), CodeInvalidRecord},
		"G12 old message format":                  {9, AcksAll, edited(batchOf("a"), func(b batch.Batch) { b[16] = 1 }), CodeInvalidRecord},
		"G24 control batch":                       {9, AcksAll, batch.NewBuilder().Attributes(0x20).Values("a").Build(), CodeInvalidRecord},
		"G25 offsets within the batch not 0 to n": {9, AcksAll, edited(twoRecords, func(b batch.Batch) { b[len(b)-5] = 6 }), CodeInvalidRecord},
		"transactional batch":                     {9, AcksAll, batch.NewBuilder().Attributes(0x10).Producer(1, 0, 0).Values("a").Build(), CodeInvalidRecord},
		"batch beyond the topic's limit":          {9, AcksAll, batchOf(string(make([]byte, 3000))), CodeMessageTooLarge},
		"timestamp far in the future":             {9, AcksAll, batch.NewBuilder().Record(time.Now().Add(48*time.Hour).UnixMilli(), nil, nil).Build(), CodeInvalidTimestamp},
		"batch cut short":                         {9, AcksAll, batchOf("a")[:40], CodeCorruptMessage},
	}
	p := newMemPartition()
	p.rules.MaxMessageBytes = 2048
	r := start(t, p)
	cl := r.client()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := onlyProduced(askOver[*kmsg.ProduceResponse](t, cl, produceRequest(c.version, c.acks, c.records)))
			if Code(got.ErrorCode) != c.want {
				t.Fatalf("got %v, want %v", Code(got.ErrorCode), c.want)
			}
			if c.want != CodeNone && c.version >= 8 && got.ErrorMessage == nil {
				t.Error("the refusal has no message")
			}
			if (got.BaseOffset >= 0) != (c.want == CodeNone) {
				t.Errorf("base offset %d with %v", got.BaseOffset, c.want)
			}
		})
	}
	for _, b := range p.batches {
		if b.LeaderEpoch() != p.view.LeaderEpoch {
			t.Errorf("stored batch has leader epoch %d, want %d", b.LeaderEpoch(), p.view.LeaderEpoch)
		}
	}
}

func flipped(b batch.Batch, at int) batch.Batch {
	b[at] ^= 0xff
	return b
}

func TestProduceRefusesWhatIsNotOurPartition(t *testing.T) {
	r := start(t, newMemPartition())
	req := produceRequest(9, AcksAll, batchOf("a"))
	req.Topics[0].Partitions = append(req.Topics[0].Partitions,
		kmsg.ProduceRequestTopicPartition{Partition: 0, Records: batchOf("b")},
		kmsg.ProduceRequestTopicPartition{Partition: 1, Records: batchOf("c")})
	req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: "other", Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batchOf("d")}}})
	resp := ask[*kmsg.ProduceResponse](r, req)
	var got []Code
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			got = append(got, Code(p.ErrorCode))
		}
	}
	want := []Code{CodeNone, CodeInvalidRequest, CodeUnknownTopicOrPartition, CodeUnknownTopicOrPartition}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if values, _ := r.partition.values(); !slices.Equal(values, []string{"a"}) {
		t.Errorf("the log holds %q", values)
	}
}

func TestProduceWithTransactionalIDIsRefused(t *testing.T) {
	r := start(t, newMemPartition())
	req := produceRequest(9, AcksAll, batchOf("a"))
	req.TransactionID = kmsg.StringPtr("tx")
	if got := onlyProduced(ask[*kmsg.ProduceResponse](r, req)); Code(got.ErrorCode) != CodeInvalidRequest {
		t.Errorf("got %v, want %v", Code(got.ErrorCode), CodeInvalidRequest)
	}
}

func TestProduceErrorsOfThePartitionReachTheClientAsCodes(t *testing.T) {
	cases := map[error]Code{
		core.ErrNotEnoughReplicas:            CodeNotEnoughReplicas,
		core.ErrNotEnoughReplicasAfterAppend: CodeNotEnoughReplicasAfterAppend,
		core.ErrTimedOut:                     CodeRequestTimedOut,
		core.ErrStorage:                      CodeKafkaStorageError,
		log.ErrNoSpace:                       CodeKafkaStorageError,
		log.ErrInvalidProducerEpoch:          CodeInvalidProducerEpoch,
		log.ErrOutOfOrderSequence:            CodeOutOfOrderSequence,
		errors.New("something secret"):       CodeUnknownServerError,
	}
	p := newMemPartition()
	r := start(t, p)
	for err, want := range cases {
		p.change(func() { p.failWith = fmt.Errorf("wrapped: %w", err) })
		got := onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, batchOf("a"))))
		if Code(got.ErrorCode) != want {
			t.Errorf("%v: got %v, want %v", err, Code(got.ErrorCode), want)
		}
		if want == CodeUnknownServerError && got.ErrorMessage != nil {
			t.Errorf("an unknown error's text %q reached the client", *got.ErrorMessage)
		}
	}
}

func TestProduceToAFollowerNamesTheLeader(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	p.setView(func(v *View) {
		v.Leads, v.Leader, v.LeaderEpoch = false, 1, 4
		v.Replicas = []Node{v.Replicas[0], {ID: 1, Address: epoch.Address{Host: "orders-1", ClientPort: 9092, ReplicationPort: 9093}}}
	})
	for _, version := range []int16{9, 10} {
		resp := ask[*kmsg.ProduceResponse](r, produceRequest(version, AcksAll, batchOf("a")))
		got := onlyProduced(resp)
		if Code(got.ErrorCode) != CodeNotLeaderOrFollower {
			t.Fatalf("version %d: got %v", version, Code(got.ErrorCode))
		}
		if version < 10 {
			continue
		}
		if got.CurrentLeader.LeaderID != 1 || got.CurrentLeader.LeaderEpoch != 4 {
			t.Errorf("current leader is %+v", got.CurrentLeader)
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].Host != "orders-1" || resp.Brokers[0].Port != 9092 {
			t.Errorf("node endpoints are %+v", resp.Brokers)
		}
	}
}

// G04: no response to acks=0, and a failure closes the connection.
func TestAcksNone(t *testing.T) {
	t.Run("success has no response", func(t *testing.T) {
		r := start(t, newMemPartition())
		nc := r.dial()
		nc.Write(frameOf(produceRequest(9, AcksNone, batchOf("a")), 1))
		nc.Write(frameOf(metadataRequest(12), 2))
		head := make([]byte, 8)
		if _, err := io.ReadFull(nc, head); err != nil {
			t.Fatal(err)
		}
		if id := binary.BigEndian.Uint32(head[4:]); id != 2 {
			t.Errorf("the first response answers request %d, want 2", id)
		}
		if values, _ := r.partition.values(); !slices.Equal(values, []string{"a"}) {
			t.Errorf("the log holds %q", values)
		}
	})
	refusals := map[string]func(p *memPartition) *kmsg.ProduceRequest{
		"refused by the server": func(*memPartition) *kmsg.ProduceRequest {
			return produceRequest(9, AcksNone, flipped(batchOf("a"), 17))
		},
		"refused by the partition": func(p *memPartition) *kmsg.ProduceRequest {
			p.failWith = core.ErrNotLeader
			return produceRequest(9, AcksNone, batchOf("a"))
		},
	}
	for name, make := range refusals {
		t.Run(name, func(t *testing.T) {
			p := newMemPartition()
			req := make(p)
			r := start(t, p)
			nc := r.dial()
			nc.Write(frameOf(req, 1))
			expectClosed(t, nc)
			r.expectServing()
		})
	}
}

// G05, F14: the second batch reaches the partition while the first still waits for
// its acknowledgement, and answers come in the order of the requests even though
// the second is acknowledged first.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	p := newMemPartition()
	p.acks = make(chan func(), 10)
	r := start(t, p)
	nc := r.dial()
	nc.Write(frameOf(produceRequest(9, AcksAll, batchOf("a")), 1))
	nc.Write(frameOf(metadataRequest(12), 2))
	nc.Write(frameOf(produceRequest(12, AcksAll, batchOf("b")), 3))
	nc.Write(frameOf(fetchRequest(12, 0, 0), 4))
	first, second := <-p.acks, <-p.acks
	second()
	first()
	for want := uint32(1); want <= 4; want++ {
		head := make([]byte, 8)
		if _, err := io.ReadFull(nc, head); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(head[4:]); got != want {
			t.Errorf("got the response to %d, want %d", got, want)
		}
		io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(head))-4)
	}
	if values, _ := p.values(); !slices.Equal(values, []string{"a", "b"}) {
		t.Errorf("the log holds %q", values)
	}
}

func TestACompactedPartitionRefusesRecordsWithoutKey(t *testing.T) {
	p := newMemPartition()
	p.rules.RequireKeys = true
	r := start(t, p)
	b := batch.NewBuilder().Record(1, []byte("k"), []byte("v")).Record(1, nil, []byte("v")).Record(1, []byte{}, nil).Record(1, nil, nil).Build()
	e := onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, b)))
	want := "Compacted topic cannot accept message without key in topic partition orders-0."
	if e.ErrorCode != int16(CodeInvalidRecord) || len(e.ErrorRecords) != 2 || e.ErrorRecords[0].RelativeOffset != 1 || e.ErrorRecords[1].RelativeOffset != 3 ||
		*e.ErrorRecords[0].ErrorMessage != want || e.ErrorMessage == nil || !strings.Contains(*e.ErrorMessage, "due to 2 record errors in total") {
		t.Errorf("refused with %d, %v, %v", e.ErrorCode, e.ErrorMessage, e.ErrorRecords)
	}
	keyed := batch.NewBuilder().Record(1, []byte("k"), nil).Record(1, []byte{}, []byte("v")).Build()
	if e := onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, keyed))); e.ErrorCode != 0 || e.BaseOffset != 0 || e.ErrorRecords != nil {
		t.Errorf("records with keys: %d at %d", e.ErrorCode, e.BaseOffset)
	}
	p.rules.RequireKeys = false
	if e := onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, b))); e.ErrorCode != 0 {
		t.Errorf("not compacted, and refused with %d", e.ErrorCode)
	}
}

// KIP-937: how far a client's time may lie from ours. With the time of the append it does
// not matter, and the answer tells what it became.
func TestRecordsOutOfTimeAreRefused(t *testing.T) {
	p := newMemPartition()
	r := start(t, p)
	now := time.Now().UnixMilli()
	const hour = 3_600_000
	b := batch.NewBuilder().Record(now, nil, nil).Record(now-3*hour, nil, nil).Build()
	produce := func() kmsg.ProduceResponseTopicPartition {
		return onlyProduced(ask[*kmsg.ProduceResponse](r, produceRequest(9, AcksAll, b)))
	}
	if e := produce(); e.ErrorCode != 0 || e.LogAppendTime != -1 {
		t.Errorf("without a limit: %d, append time %d", e.ErrorCode, e.LogAppendTime)
	}
	p.rules.MaxBehind = 2 * time.Hour
	e := produce()
	if Code(e.ErrorCode) != CodeInvalidTimestamp || e.ErrorMessage == nil || *e.ErrorMessage != "One or more records have been rejected due to invalid timestamp" ||
		len(e.ErrorRecords) != 1 || e.ErrorRecords[0].RelativeOffset != 1 || !strings.HasPrefix(*e.ErrorRecords[0].ErrorMessage, fmt.Sprintf("Timestamp %d of message with offset 1 is out of range. The timestamp should be within [", now-3*hour)) {
		t.Errorf("too old: %d, %v, %v", e.ErrorCode, e.ErrorMessage, e.ErrorRecords)
	}
	p.rules.AppendTime = true
	before := time.Now().UnixMilli()
	if e := produce(); e.ErrorCode != 0 || e.LogAppendTime < before || e.LogAppendTime > time.Now().UnixMilli() {
		t.Errorf("the time of the append: %d, append time %d", e.ErrorCode, e.LogAppendTime)
	}
}
