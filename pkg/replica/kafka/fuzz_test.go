package kafka

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Whatever bytes arrive, the connection ends when the client closes it, and nothing
// panics.
func FuzzConnection(f *testing.F) {
	for _, a := range apis {
		for version := a.min; version <= a.max; version++ {
			req := kmsg.RequestForKey(a.key)
			req.SetVersion(version)
			f.Add(frameOf(req, 1), false)
		}
	}
	f.Add(frameOf(produceRequest(9, AcksAll, batchOf("a", "b")), 1), false)
	f.Add(frameOf(produceRequest(12, AcksNone, batchOf("a")), 1), false)
	f.Add(frameOf(fetchRequest(13, 0, time.Hour), 1), false)
	f.Add(frameOf(replicaFetchRequest(18, 1, 7, 0, time.Hour), 1), true)
	f.Add(frameOf(listOffsetsRequest(7, -3), 1), true)
	f.Fuzz(func(t *testing.T, sent []byte, replicas bool) {
		s := &Server{Partition: newMemPartition()}
		if replicas {
			s.Listener = Replication
		}
		sv, err := s.start()
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			newConn(sv, there).run(context.Background())
		}()
		go io.Copy(io.Discard, here)
		here.SetWriteDeadline(time.Now().Add(patience))
		here.Write(sent)
		here.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the connection does not end")
		}
	})
}
