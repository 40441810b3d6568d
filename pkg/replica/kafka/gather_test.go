package kafka

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// However a response is sent, the bytes are those that its encoder makes.
func TestEncodedResponsesAreTheSameInPieces(t *testing.T) {
	records := bytes.Repeat([]byte("0123456789"), 30_000)
	for version := int16(4); version <= 18; version++ {
		for _, n := range []int{0, 100, gatherFrom - 1, gatherFrom, 1 << 14, len(records)} {
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = version
			broker := kmsg.NewFetchResponseBroker()
			broker.NodeID, broker.Host, broker.Port = 7, "host", 9092
			resp.Brokers = append(resp.Brokers, broker)
			for i := range 2 {
				topic := kmsg.NewFetchResponseTopic()
				topic.Topic, topic.TopicID = "orders", [16]byte{1}
				p := kmsg.NewFetchResponseTopicPartition()
				p.HighWatermark, p.RecordBatches = 42, []byte{}
				if i == 0 {
					p.RecordBatches = records[:n]
					p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 7, 3
				}
				topic.Partitions = append(topic.Partitions, p)
				resp.Topics = append(resp.Topics, topic)
			}
			want := appendResponse(nil, 99, resp)
			got := encodeResponse(99, resp)
			if all := slices.Concat(got.pieces...); !bytes.Equal(all, want) || got.size != len(want) {
				t.Errorf("version %d with %d bytes of records: %d bytes (%d told), want %d", version, n, len(all), got.size, len(want))
			}
			if (len(got.pieces) > 1) != (n >= gatherFrom) {
				t.Errorf("version %d with %d bytes of records goes out in %d pieces", version, n, len(got.pieces))
			}
		}
	}
}

func TestPiecesAreWrittenInOrder(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	read := make(chan []byte, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		b, _ := io.ReadAll(c)
		read <- b
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pieces := net.Buffers{[]byte("head"), bytes.Repeat([]byte("records"), 200_000), nil, []byte("tail")}
	want := slices.Concat(pieces...)
	if err := writeAll(c, pieces, time.Minute); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if got := <-read; !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want %d", len(got), len(want))
	}
}
