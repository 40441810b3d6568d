package floor

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == ReceiverCommand {
		if err := Receive(os.Args[2], os.Args[3:]); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestACopyEndsWhenAllAreWritten(t *testing.T) {
	got, err := Copy(t.Context(), t.TempDir(), 3<<20+17)
	if err != nil {
		t.Fatal(err)
	}
	if got.Bytes != 3<<20+17 || got.Elapsed <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAReceiverHandsOnWhatItWrites(t *testing.T) {
	in, from := pair(t)
	to, out := pair(t)
	var file bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- receive(in, &file, []net.Conn{to}) }()
	sent := bytes.Repeat([]byte("abc"), 300_000)
	go func() {
		_, _ = from.Write(sent)
		_ = from.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("it was done (%v) before the next one was", err)
	default:
	}
	if _, err := out.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) || !bytes.Equal(file.Bytes(), sent) {
		t.Errorf("sent %d bytes, handed on %d, wrote %d", len(sent), len(got), file.Len())
	}
}

func pair(t *testing.T) (a, b net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

func TestSyncsOfAllFilesAreCounted(t *testing.T) {
	got, err := Sync(t.TempDir(), 100, 2, 20*time.Millisecond)
	if err != nil || got.PerSecond <= 0 || got.Latency.Quantile(0.5) <= 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}
