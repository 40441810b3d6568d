package logtool

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// The kinds of lines that dump --json prints, and what text is made of. docs/log.md
// describes every field.
type (
	logEntry struct {
		Kind      string `json:"kind"` // log
		Name      string `json:"name"`
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		TopicID   string `json:"topicId,omitempty"`
		Clean     bool   `json:"stoppedCleanly"`
	}
	propertyEntry struct {
		Kind  string `json:"kind"` // property
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	checkpointEntry struct {
		Kind   string       `json:"kind"` // checkpoint
		File   string       `json:"file"`
		Offset epoch.Offset `json:"offset"`
	}
	epochEntry struct {
		Kind  string            `json:"kind"` // epoch
		Epoch epoch.LeaderEpoch `json:"leaderEpoch"`
		Start epoch.Offset      `json:"startOffset"`
	}
	segmentEntry struct {
		Kind string       `json:"kind"` // segment
		File string       `json:"file"`
		Base epoch.Offset `json:"baseOffset"`
	}
	batchEntry struct {
		Kind          string            `json:"kind"` // batch
		File          string            `json:"file"`
		Position      int64             `json:"position"`
		Base          epoch.Offset      `json:"baseOffset"`
		Last          epoch.Offset      `json:"lastOffset"`
		Count         int32             `json:"count"`
		LeaderEpoch   epoch.LeaderEpoch `json:"leaderEpoch"`
		ProducerID    int64             `json:"producerId"`
		ProducerEpoch int16             `json:"producerEpoch"`
		BaseSequence  int32             `json:"baseSequence"`
		LastSequence  int32             `json:"lastSequence"`
		Codec         string            `json:"codec"`
		TimestampType string            `json:"timestampType"` // create or logAppend
		MaxTimestamp  int64             `json:"maxTimestamp"`
		Size          int               `json:"size"`
		CRC           uint32            `json:"crc"`
		CRCValid      bool              `json:"crcValid"`
		Magic         int8              `json:"magic"`
		Transactional bool              `json:"transactional"`
		Control       bool              `json:"control"`
		DeleteHorizon *int64            `json:"deleteHorizon,omitempty"`
	}
	recordEntry struct {
		Kind      string        `json:"kind"` // record
		Offset    epoch.Offset  `json:"offset"`
		Timestamp int64         `json:"timestamp"`
		Key       *text         `json:"key"`
		KeyB64    *string       `json:"keyBase64,omitempty"`
		Value     *text         `json:"value"`
		ValueB64  *string       `json:"valueBase64,omitempty"`
		Headers   []headerEntry `json:"headers"`

		key, value []byte
	}
	headerEntry struct {
		Key      string  `json:"key"`
		Value    *text   `json:"value"`
		ValueB64 *string `json:"valueBase64,omitempty"`

		value []byte
	}
	offsetIndexEntry struct {
		Kind     string       `json:"kind"` // offsetIndex
		File     string       `json:"file"`
		Offset   epoch.Offset `json:"offset"`
		Position int64        `json:"position"`
	}
	timeIndexEntry struct {
		Kind      string       `json:"kind"` // timeIndex
		File      string       `json:"file"`
		Timestamp int64        `json:"timestamp"`
		Offset    epoch.Offset `json:"offset"`
	}
	snapshotEntry struct {
		Kind      string       `json:"kind"` // snapshot
		File      string       `json:"file"`
		Offset    epoch.Offset `json:"offset"`
		Producers int          `json:"producers"`
	}
	producerEntry struct {
		Kind             string       `json:"kind"` // producer
		File             string       `json:"file"`
		ProducerID       int64        `json:"producerId"`
		ProducerEpoch    int16        `json:"producerEpoch"`
		LastSequence     int32        `json:"lastSequence"`
		LastOffset       epoch.Offset `json:"lastOffset"`
		OffsetDelta      int32        `json:"offsetDelta"`
		Timestamp        int64        `json:"timestamp"`
		CoordinatorEpoch int32        `json:"coordinatorEpoch"`
		TransactionStart epoch.Offset `json:"transactionStart"`
	}
	damageEntry struct {
		Kind     string `json:"kind"` // damage
		File     string `json:"file"`
		Position *int64 `json:"position,omitempty"`
		Error    string `json:"error"`
	}
)

// text is bytes that are UTF-8.
type text = string

// readable splits bytes into what JSON can hold as they are, and base64.
func readable(b []byte) (*text, *string) {
	if b == nil {
		return nil, nil
	}
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

func newBatchEntry(file string, b log.StoredBatch) batchEntry {
	h := b.Header
	e := batchEntry{Kind: "batch", File: file, Position: b.Position, Base: h.BaseOffset(), Last: h.LastOffset(), Count: h.Count(),
		LeaderEpoch: h.LeaderEpoch(), ProducerID: h.ProducerID(), ProducerEpoch: h.ProducerEpoch(), BaseSequence: h.BaseSequence(),
		LastSequence: h.LastSequence(), Codec: h.Codec().String(), TimestampType: "create", MaxTimestamp: h.MaxTimestamp(), Size: h.Size(),
		CRC: h.CRC(), CRCValid: b.Sound(), Magic: h.Magic(), Transactional: h.Transactional(), Control: h.Control()}
	if h.LogAppendTime() {
		e.TimestampType = "logAppend"
	}
	if h.HasDeleteHorizon() {
		horizon := h.BaseTimestamp()
		e.DeleteHorizon = &horizon
	}
	return e
}

func newRecordEntry(r batch.Record) recordEntry {
	e := recordEntry{Kind: "record", Offset: r.Offset, Timestamp: r.Timestamp, Headers: []headerEntry{}, key: r.Key, value: r.Value}
	e.Key, e.KeyB64 = readable(r.Key)
	e.Value, e.ValueB64 = readable(r.Value)
	for _, h := range r.Headers {
		he := headerEntry{Key: h.Key, value: h.Value}
		he.Value, he.ValueB64 = readable(h.Value)
		e.Headers = append(e.Headers, he)
	}
	return e
}
