package load

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// server acknowledges records in another goroutine, and knows how many were open at most.
type server struct {
	mu          sync.Mutex
	open, most  int
	failAt, got int
	queue       chan func(error)
}

var errRefused = errors.New("refused")

func newServer(t *testing.T, failAt int) *server {
	s := &server{failAt: failAt, queue: make(chan func(error), 10_000)}
	go func() {
		for done := range s.queue {
			s.mu.Lock()
			s.open--
			s.got++
			var err error
			if s.got == s.failAt {
				err = errRefused
			}
			s.mu.Unlock()
			done(err)
		}
	}()
	t.Cleanup(func() { close(s.queue) })
	return s
}

func (s *server) Produce(_ context.Context, _ []byte, done func(error)) {
	s.mu.Lock()
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	s.queue <- done
}
func (s *server) Batches() uint64 { return 0 }
func (s *server) Close()          {}

func TestAClosedLoopKeepsItsBound(t *testing.T) {
	s := newServer(t, 0)
	r, err := Closed(t.Context(), []Producer{s, s}, 5, NewValues(10, 1), Limit{Bytes: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records != 5000 || r.Bytes != 50_000 {
		t.Errorf("%d records of %d bytes were acknowledged, want 5000 of 50000", r.Records, r.Bytes)
	}
	if s.most > 10 {
		t.Errorf("%d records were under way at once, want at most 10", s.most)
	}
}

func TestAFailedRecordFailsTheRun(t *testing.T) {
	if _, err := Closed(t.Context(), []Producer{newServer(t, 100)}, 5, NewValues(10, 1), Limit{Bytes: 50_000}); !errors.Is(err, errRefused) {
		t.Errorf("closed loop: got %v", err)
	}
	if _, err := Open(t.Context(), []Producer{newServer(t, 2)}, 10_000, NewValues(10, 1), 10*time.Millisecond); !errors.Is(err, errRefused) {
		t.Errorf("open loop: got %v", err)
	}
}

func TestAnOpenLoopSendsWhatIsDue(t *testing.T) {
	r, err := Open(t.Context(), []Producer{newServer(t, 0), newServer(t, 0)}, 50_500, NewValues(10, 1), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Records != 1010 {
		t.Errorf("%d records were sent, want 1010", r.Records)
	}
}

func TestValuesAreTheSameForASeed(t *testing.T) {
	a, b, other := NewValues(100, 7), NewValues(100, 7), NewValues(100, 8)
	if string(a.at(1234)) != string(b.at(1234)) {
		t.Error("one seed gave two values")
	}
	if string(a.at(1234)) == string(other.at(1234)) || string(a.at(1)) == string(a.at(2)) {
		t.Error("values repeat")
	}
}
