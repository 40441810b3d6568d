package kafka

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipeClient is a client whose other side answers with the given bytes.
func pipeClient(t testing.TB, maxBytes int, answer []byte) *Client {
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() {
		go io.Copy(io.Discard, there)
		there.Write(answer)
		there.Close()
	}()
	return NewClient(here, "test", maxBytes)
}

func TestClientRefusesResponses(t *testing.T) {
	cases := map[string][]byte{
		"closed at once":       nil,
		"too large":            {0x7f, 0xff, 0xff, 0xff},
		"negative size":        {0xff, 0xff, 0xff, 0xff},
		"too small":            {0, 0, 0, 1, 0},
		"cut short":            {0, 0, 0, 10, 0, 0, 0, 1},
		"other correlation id": {0, 0, 0, 4, 0, 0, 0, 9},
		"no header tags":       {0, 0, 0, 4, 0, 0, 0, 1},
		"body cut short":       {0, 0, 0, 6, 0, 0, 0, 1, 0, 0},
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			cl := pipeClient(t, 1<<20, answer)
			if _, err := cl.Do(t.Context(), metadataRequest(12)); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("got %v, want an error that is not an end of data", err)
			}
			if _, err := cl.Do(t.Context(), metadataRequest(12)); err == nil {
				t.Error("the client goes on after an error")
			}
		})
	}
}

func TestClientReadsAResponseThatOutgrowsItsBuffer(t *testing.T) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 12
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = make([]byte, 5<<20)
	resp.Topics = []kmsg.FetchResponseTopic{{Topic: testTopic, Partitions: []kmsg.FetchResponseTopicPartition{p}}}
	cl := pipeClient(t, 8<<20, appendResponse(nil, 1, resp))
	got, err := cl.Do(t.Context(), fetchRequest(12, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(onlyFetched(got.(*kmsg.FetchResponse)).RecordBatches); n != 5<<20 {
		t.Errorf("got %d bytes of records", n)
	}
}

func TestClientEndsWithItsContext(t *testing.T) {
	r := start(t, newMemPartition())
	cl := r.client()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := cl.Do(ctx, fetchRequest(12, 0, 10*patience)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := cl.Do(t.Context(), metadataRequest(12)); err == nil {
		t.Error("the client goes on after a request was given up")
	}
}

func FuzzClientResponse(f *testing.F) {
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = 12
	f.Add(appendResponse(nil, 1, resp))
	f.Add(kbin.AppendInt32(nil, 1<<30))
	f.Fuzz(func(t *testing.T, answer []byte) {
		cl := pipeClient(t, 1<<20, answer)
		cl.Do(t.Context(), metadataRequest(12))
	})
}
