package kafka

import (
	"bytes"
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/internal/buffers"
)

// gatherFrom is from how many bytes of records on a response is not copied together: a
// copy costs less than a second system call's worth of bookkeeping below it.
const gatherFrom = 8 << 10

// recordsMark stands for the records while a response is encoded. It is no text in any
// encoding, so nothing else of a response can hold it.
var recordsMark = []byte{0xff, 0xfe, 0x9d, 0xc1, 0xf5, 0x80, 0xfa, 0x1b, 0xff, 0xc0, 0x8e, 0xf8, 0xa0, 0xfe, 0xff, 0x91}

// response is an encoded response: what is sent, piece by piece, and the pooled buffer
// that all but the records lie in.
type response struct {
	pieces net.Buffers
	buffer []byte
	size   int
}

// encodeResponse encodes a response with its header. The records of a large Fetch answer
// are sent from where they are.
func encodeResponse(correlationID int32, resp kmsg.Response) response {
	var out response
	p := largeFetch(resp)
	if p == nil {
		out.buffer = appendResponse(buffers.Get(buffers.Smallest)[:0], correlationID, resp)
		out.pieces, out.size = net.Buffers{out.buffer}, len(out.buffer)
		return out
	}
	records := p.RecordBatches
	p.RecordBatches = recordsMark
	out.buffer = appendResponse(buffers.Get(buffers.Smallest)[:0], correlationID, resp)
	p.RecordBatches = records
	at := bytes.Index(out.buffer, recordsMark)
	head, tail := out.buffer[:at], out.buffer[at+len(recordsMark):]
	if resp.IsFlexible() {
		head = binary.AppendUvarint(bytes.Clone(head[:at-1]), uint64(len(records))+1)
	} else {
		binary.BigEndian.PutUint32(head[at-4:], uint32(len(records)))
	}
	out.size = len(head) + len(records) + len(tail)
	binary.BigEndian.PutUint32(head, uint32(out.size-4))
	out.pieces = net.Buffers{head, records, tail}
	return out
}

// largeFetch is the one entry of a Fetch answer that has many records; nil if this is no
// such answer.
func largeFetch(resp kmsg.Response) *kmsg.FetchResponseTopicPartition {
	f, ok := resp.(*kmsg.FetchResponse)
	if !ok {
		return nil
	}
	for i := range f.Topics {
		for j := range f.Topics[i].Partitions {
			if p := &f.Topics[i].Partitions[j]; len(p.RecordBatches) >= gatherFrom {
				return p
			}
		}
	}
	return nil
}

// writeAll writes with a new deadline for every chunk, as readFull reads.
func writeAll(nc net.Conn, pieces net.Buffers, stall time.Duration) error {
	const chunk = 256 << 10
	for len(pieces) > 0 {
		var now net.Buffers
		for room := chunk; room > 0 && len(pieces) > 0; {
			n := min(room, len(pieces[0]))
			now = append(now, pieces[0][:n])
			room -= n
			if pieces[0] = pieces[0][n:]; len(pieces[0]) == 0 {
				pieces = pieces[1:]
			}
		}
		if err := nc.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return err
		}
		if err := writeTogether(nc, now); err != nil {
			return err
		}
	}
	return nil
}

func writeTogether(nc net.Conn, pieces net.Buffers) (err error) {
	if len(pieces) == 1 {
		_, err = nc.Write(pieces[0])
	} else {
		_, err = pieces.WriteTo(nc)
	}
	return err
}
