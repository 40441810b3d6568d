package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// Produce (key 0).
//
// Versions 3 to 12 are served; 0 to 2 carry the old message formats and are
// refused with UNSUPPORTED_VERSION. They are advertised all the same, because
// librdkafka derives from them whether it may compress (KAFKA-18659).
//
//   - v5 adds the log start offset, v8 an error message, v9 is flexible, v10 tells
//     the current leader when the refusal is about leadership (KIP-951).
//   - v7 is the first that may carry zstd; an older one with it is refused with
//     UNSUPPORTED_COMPRESSION_TYPE.
//   - v13, which names topics by id, is not served: clients agree on 12.
//
// One request may carry one batch for our partition (KIP-98 clients send no more).
// Requests of one connection are enqueued in their order, while earlier ones still
// wait for their acknowledgement. acks=0 has no response; if it fails the
// connection is closed, so that the client notices.
//
// A compacted partition takes no record without a key (KIP-467): the batch is refused
// as a whole with INVALID_RECORD, and from v8 on the answer lists the records. So it is
// with records whose time is out of range, and INVALID_TIMESTAMP (KIP-937). Where the time
// is that of the append, the answer tells it.
//
// Transactions are not served: a transactional id or batch is INVALID_REQUEST,
// since it would be committed at once and without its transaction.
var apiProduce = &api{key: keyProduce, name: "Produce", min: 0, max: 12}

const (
	produceFirstServed = 3
	produceFirstZstd   = 7
	// maxProduceEntries bounds topics, and partitions of a topic, in one request.
	// There is one of each to produce to; a client that knows of more clusters than
	// this one may send a few by mistake.
	maxProduceEntries = 64
)

// submitProduce checks the request, hands the batch to the partition and sets
// x.wait to what answers it. It runs in the connection's reader. An error is a
// malformed request.
func (x *exchange) submitProduce(req *kmsg.ProduceRequest, body []byte) error {
	if err := checkProduceShape(body, x.version); err != nil {
		return err
	}
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: Produce version %d: %w", errMalformed, x.version, err)
	}
	p := x.planProduce(req)
	x.wait = func() (kmsg.Response, error) { return p.respond(x, req.Acks) }
	if p.accepted == nil {
		return nil
	}
	f := x.frame
	x.frame = nil
	p.result = make(chan ProduceResult, 1)
	r := ProduceRequest{Batch: p.batch, AppendTime: p.appendTime, Acks: req.Acks, Timeout: time.Duration(max(req.TimeoutMillis, 0)) * time.Millisecond}
	x.Partition.Produce(r, func(res ProduceResult) {
		f.release()
		p.result <- res
	})
	return nil
}

// produced is a Produce request under way: the response, and the one entry of it
// that waits for the partition.
type produced struct {
	resp     *kmsg.ProduceResponse
	accepted *kmsg.ProduceResponseTopicPartition
	batch    batch.Batch
	result   chan ProduceResult
	// appendTime says that the leader's time is put in the place of the client's.
	appendTime bool
	// refused are the records for which our batch is refused.
	refused *batch.RecordsError
	// failed is set when any entry was refused.
	failed bool
}

// planProduce fills in every refusal that needs no partition.
func (x *exchange) planProduce(req *kmsg.ProduceRequest) *produced {
	p := &produced{resp: kmsg.NewPtrProduceResponse()}
	p.resp.Version = x.version
	p.resp.Topics = make([]kmsg.ProduceResponseTopic, len(req.Topics))
	topic := x.Partition.View().Topic
	seen := false
	for i, rt := range req.Topics {
		t := &p.resp.Topics[i]
		t.Topic = rt.Topic
		t.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(rt.Partitions))
		for j := range rt.Partitions {
			e := &t.Partitions[j]
			e.Default()
			e.Partition = rt.Partitions[j].Partition
			e.BaseOffset = -1
			code, message := CodeUnknownTopicOrPartition, ""
			switch {
			case rt.Topic != topic || e.Partition != 0:
			case seen:
				code, message = CodeInvalidRequest, "the partition appears twice in one request"
			default:
				seen = true
				code, message = x.checkProduced(p, req, rt.Partitions[j].Records)
			}
			if code == CodeNone {
				p.accepted = e
				continue
			}
			p.refuse(e, x.fail(code), message)
			if p.refused != nil {
				e.ErrorRecords, p.refused = recordErrors(p.refused, topic), nil
			}
		}
	}
	return p
}

// checkProduced validates what was sent for our partition.
func (x *exchange) checkProduced(p *produced, req *kmsg.ProduceRequest, records []byte) (Code, string) {
	switch {
	case x.version < produceFirstServed:
		return CodeUnsupportedVersion, fmt.Sprintf("Produce is served from version %d on", produceFirstServed)
	case req.Acks < AcksAll || req.Acks > AcksLeader:
		return CodeInvalidRequiredAcks, fmt.Sprintf("acks is %d; it must be -1 (all), 0 or 1", req.Acks)
	case req.TransactionID != nil:
		return CodeInvalidRequest, transactionsRefused
	}
	var err error
	p.batch, p.appendTime, err = x.oneBatch(records)
	if errors.As(err, &p.refused) {
		return CodeOf(err), recordsRefused(p.refused, x.Partition.View().Topic)
	}
	if err != nil {
		return CodeOf(err), err.Error()
	}
	return CodeNone, ""
}

// oneBatch checks the records of one partition: one batch, fit to be stored as it is, but
// for its time if the leader's is put in its place.
func (x *exchange) oneBatch(records []byte) (b batch.Batch, appendTime bool, err error) {
	rules := x.Partition.Rules()
	b, err = batch.Validate(records, batch.Limits{MaxBatchBytes: rules.MaxMessageBytes, RequireKeys: rules.RequireKeys,
		Now: time.Now().UnixMilli(), AppendTime: rules.AppendTime, MaxBehind: rules.MaxBehind, MaxAhead: rules.MaxAhead})
	if err != nil {
		return nil, false, err
	}
	if b.Codec() == batch.CodecZstd && x.version < produceFirstZstd {
		return nil, false, fmt.Errorf("%w: zstd needs Produce version %d", batch.ErrUnsupportedCompression, produceFirstZstd)
	}
	return b, rules.AppendTime, nil
}

const transactionsRefused = "transactions are not served; use an idempotent producer without a transactional id"

func (p *produced) refuse(e *kmsg.ProduceResponseTopicPartition, code int16, message string) {
	p.failed = true
	e.ErrorCode = code
	if message != "" {
		e.ErrorMessage = &message
	}
}

// respond waits for the partition. It runs in the connection's writer.
func (p *produced) respond(x *exchange, acks int16) (kmsg.Response, error) {
	if p.accepted != nil {
		select {
		case res := <-p.result:
			p.settle(x, res)
		case <-x.gone.Done():
			return nil, x.gone.Err()
		}
	}
	switch {
	case acks != AcksNone:
		return p.resp, nil
	case p.failed:
		return nil, errCloseQuietly
	default:
		return nil, nil
	}
}

func (p *produced) settle(x *exchange, res ProduceResult) {
	e := p.accepted
	if res.Err == nil {
		e.BaseOffset = int64(res.BaseOffset)
		e.LogAppendTime = res.LogAppendTime
		e.LogStartOffset = int64(res.LogStartOffset)
		return
	}
	code := x.code(res.Err)
	p.refuse(e, int16(code), clientMessage(code, res.Err))
	if leader, ok := x.currentLeader(code); ok {
		e.CurrentLeader.LeaderID, e.CurrentLeader.LeaderEpoch = leader.id, leader.epoch
		if leader.node != nil {
			b := kmsg.NewProduceResponseBroker()
			b.NodeID, b.Host, b.Port = leader.id, leader.node.Address.Host, x.port(leader.node.Address)
			p.resp.Brokers = append(p.resp.Brokers, b)
		}
	}
}

// clientMessage is the text of an error for clients. That of an unknown error stays
// in the log: it may say things that are not meant for them.
func clientMessage(code Code, err error) string {
	if code == CodeUnknownServerError {
		return ""
	}
	return err.Error()
}

// checkProduceShape walks over a request without allocating and refuses one with
// more entries than anybody needs: decoded, an entry takes many times its bytes.
func checkProduceShape(body []byte, version int16) error {
	r := kbin.Reader{Src: body}
	w := shapeWalker{Reader: &r, flexible: version >= 9}
	if version >= produceFirstServed {
		w.skipString()
	}
	r.Int16()
	r.Int32()
	w.array(func() {
		w.skipString()
		w.array(func() {
			r.Int32()
			w.skipBytes()
			w.tags()
		})
		w.tags()
	})
	w.tags()
	if w.bad || !r.Ok() {
		return fmt.Errorf("%w: Produce version %d: cut short, or more than %d topics or partitions", errMalformed, version, maxProduceEntries)
	}
	return nil
}

type shapeWalker struct {
	*kbin.Reader
	flexible, bad bool
}

func (w *shapeWalker) array(each func()) {
	n := int32(0)
	if w.flexible {
		n = w.CompactArrayLen()
	} else {
		n = w.ArrayLen()
	}
	if n > maxProduceEntries {
		w.bad = true
	}
	for i := int32(0); i < n && !w.bad && w.Ok(); i++ {
		each()
	}
}

func (w *shapeWalker) skipString() {
	if w.flexible {
		w.UnsafeCompactNullableString()
	} else {
		w.UnsafeNullableString()
	}
}

func (w *shapeWalker) skipBytes() {
	if w.flexible {
		w.CompactNullableBytes()
	} else {
		w.NullableBytes()
	}
}

func (w *shapeWalker) tags() {
	if w.flexible && !skipTags(w.Reader) {
		w.bad = true
	}
}
