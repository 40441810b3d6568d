package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/test/history"
)

// read numbers values from offset 0 on.
func read(values ...string) []history.Record {
	var rs []history.Record
	for i, v := range values {
		rs = append(rs, history.Record{Offset: int64(i), Value: v})
	}
	return rs
}

// at makes a read out of any offsets, each with the value that threeOfA has there.
func at(offsets ...int64) []history.Record {
	var rs []history.Record
	for _, o := range offsets {
		rs = append(rs, history.Record{Offset: o, Value: fmt.Sprintf("a/%d", o)})
	}
	return rs
}

// threeOfA is a producer "a" that sent three records: two acknowledged at 0 and 1, the last without an answer.
func threeOfA(p history.Promise) *history.Log {
	l := history.NewLog()
	l.Declare("a", p)
	for range 3 {
		l.Send("a")
	}
	l.Acked("a", 0, 0)
	l.Acked("a", 1, 1)
	return l
}

func kinds(v history.Verdict) []history.Kind {
	var got []history.Kind
	for _, f := range v.Faults {
		got = append(got, f.Kind)
	}
	return got
}

func TestEveryKindOfFaultIsFound(t *testing.T) {
	tests := []struct {
		name   string
		final  []history.Record
		during []history.Record
		upto   int64
		want   []history.Kind // in the order found
	}{
		{name: "all there", final: read("a/0", "a/1", "a/2")},
		{name: "a record without an answer may be absent", final: read("a/0", "a/1")},
		{name: "an acknowledged record is gone", final: read("a/0"), want: []history.Kind{history.LostWrite}},
		{name: "the log is empty", final: nil, want: []history.Kind{history.LostWrite, history.LostWrite}},
		{name: "acknowledged records moved by one that was never acknowledged", final: read("a/2", "a/0", "a/1"),
			want: []history.Kind{history.NonmonotonicSend, history.NonmonotonicSend, history.InconsistentOffset, history.InconsistentOffset}},
		{name: "a retry was written again", final: read("a/0", "a/1", "a/1"), want: []history.Kind{history.Duplicate}},
		{name: "an unanswered record is there twice", final: read("a/0", "a/1", "a/2", "a/2"), want: []history.Kind{history.Duplicate}},
		{name: "nobody sent it", final: read("a/0", "a/1", "b/0"), want: []history.Kind{history.Phantom}},
		{name: "a number beyond what was sent", final: read("a/0", "a/1", "a/3"), want: []history.Kind{history.Phantom}},
		{name: "bytes changed", final: read("a/0", "a/1", "a/02"), want: []history.Kind{history.Phantom}},
		{name: "a hole between offsets", final: []history.Record{{Offset: 0, Value: "a/0"}, {Offset: 1, Value: "a/1"}, {Offset: 3, Value: "a/2"}},
			want: []history.Kind{history.SkippedPoll}},
		{name: "an early reader saw a prefix", final: read("a/0", "a/1", "a/2"), during: at(0, 1)},
		{name: "a reader that began late", final: read("a/0", "a/1", "a/2"), during: at(1, 2), upto: 3},
		{name: "an early reader saw what is gone", final: read("a/0", "a/1"), during: at(0, 1, 2), want: []history.Kind{history.VanishedRead}},
		{name: "a reader of a log that is now empty", final: nil, during: at(0),
			want: []history.Kind{history.LostWrite, history.LostWrite, history.VanishedRead}},
		{name: "an early reader saw another record there", final: read("a/0", "a/1"), during: read("a/0", "a/2"), want: []history.Kind{history.InconsistentOffset}},
		{name: "a reader was sent back", final: read("a/0", "a/1", "a/2"), during: at(0, 1, 1, 2), want: []history.Kind{history.NonmonotonicPoll}},
		{name: "a reader was sent on too far", final: read("a/0", "a/1", "a/2"), during: at(0, 2), want: []history.Kind{history.SkippedPoll}},
		{name: "a reader that stopped early is no fault", final: read("a/0", "a/1", "a/2"), during: at(0)},
		{name: "a reader never saw the end", final: read("a/0", "a/1", "a/2"), during: at(0, 1), upto: 3, want: []history.Kind{history.Unseen}},
		{name: "a record arrived when the reader had stopped", final: read("a/0", "a/1", "a/2"), during: at(0, 1), upto: 2},
		{name: "a reader never saw anything", final: read("a/0", "a/1"), upto: 2, want: []history.Kind{history.Unseen}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := threeOfA(history.Promise{}).Judge(tc.final, history.Read{Name: "a reader", Records: tc.during, Upto: tc.upto})
			if got := kinds(v); !slices.Equal(got, tc.want) {
				t.Errorf("final %v, during %v:\ngot  %v\nwant kinds %v", tc.final, tc.during, v.Faults, tc.want)
			}
			if (v.Err() == nil) != (len(tc.want) == 0) {
				t.Errorf("Err() = %v with faults %v", v.Err(), v.Faults)
			}
		})
	}
}

func TestARefusedRecordMustNotBeThere(t *testing.T) {
	for name, tc := range map[string]struct {
		final []history.Record
		want  []history.Kind
	}{
		"absent": {final: read("a/0", "a/1")},
		"there":  {final: read("a/0", "a/1", "a/2"), want: []history.Kind{history.AbortedRead}},
	} {
		t.Run(name, func(t *testing.T) {
			l := threeOfA(history.Promise{Plain: true})
			l.Rejected("a", 2)
			if v := l.Check(tc.final); !slices.Equal(kinds(v), tc.want) || v.Levels[history.AcksAll].Rejected != 1 {
				t.Errorf("got %v, %v, want kinds %v", v, v.Faults, tc.want)
			}
		})
	}
}

func TestWeakerPromisesAllowMore(t *testing.T) {
	plain := func(a history.Acks) history.Promise { return history.Promise{Acks: a, Plain: true} }
	tests := []struct {
		name     string
		promise  history.Promise
		final    []history.Record
		lost     int
		repeated int
		want     []history.Kind
	}{
		{name: "acks=1 may lose what it acknowledged", promise: plain(history.AcksLeader), final: read("a/0"), lost: 1},
		{name: "acks=1 may lose it and have another record there", promise: plain(history.AcksLeader), final: read("a/1", "a/2"), lost: 1},
		{name: "acks=0 may lose everything", promise: plain(history.AcksNone), lost: 2},
		{name: "acks=0 knows no offsets", promise: plain(history.AcksNone), final: read("a/2", "a/0", "a/1")},
		{name: "a plain producer's retry may repeat", promise: plain(history.AcksAll), final: read("a/0", "a/1", "a/2", "a/2"), repeated: 1},
		{name: "acknowledged where the second copy is", promise: plain(history.AcksAll), final: read("a/0", "a/1", "a/0"), repeated: 1},
		{name: "a plain producer with acks=all must not lose", promise: plain(history.AcksAll), final: read("a/0"), lost: 1, want: []history.Kind{history.LostWrite}},
		{name: "an idempotent one with acks=1 must not repeat", promise: history.Promise{Acks: history.AcksLeader}, final: read("a/0", "a/0"), lost: 1, want: []history.Kind{history.Duplicate}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := threeOfA(tc.promise).Check(tc.final)
			if got := kinds(v); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want kinds %v", v.Faults, tc.want)
			}
			if n := v.Levels[tc.promise.Acks]; n.Lost != tc.lost || n.Sent != 3 || n.Acked != 2 || v.Repeated != tc.repeated {
				t.Errorf("got %+v, repeated %d, want lost %d, repeated %d", n, v.Repeated, tc.lost, tc.repeated)
			}
		})
	}
}

func TestWhatWasShownMustStayWhoeverWroteIt(t *testing.T) {
	l := threeOfA(history.Promise{Acks: history.AcksLeader, Plain: true})
	v := l.Check(read("a/0"), read("a/0", "a/1"))
	if got, want := kinds(v), []history.Kind{history.VanishedRead}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", v.Faults, want)
	}
}

func TestCheckKeepsProducersApart(t *testing.T) {
	l := history.NewLog()
	for i := range 3 {
		for j, p := range []string{"a", "b"} {
			seq, value := l.Send(p)
			if want := fmt.Sprintf("%s/%d", p, i); value != want {
				t.Fatalf("Send(%q) = %q, want %q", p, value, want)
			}
			l.Acked(p, seq, int64(2*i+j))
		}
	}
	l.Send("b")
	l.Failed("b", 3)
	v := l.Check(read("a/0", "b/0", "a/1", "b/1", "a/2", "b/2", "b/3"))
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if want := (history.Level{Sent: 7, Acked: 6, Failed: 1}); v.Levels[history.AcksAll] != want || v.Unasked != 1 {
		t.Errorf("got %v", v)
	}
}

func TestErrNamesOnlyTheFirstFaults(t *testing.T) {
	l := history.NewLog()
	for i := range 100 {
		l.Send("a")
		l.Acked("a", i, int64(i))
	}
	err := l.Check(nil).Err()
	if err == nil {
		t.Fatal("a hundred lost records are no error")
	}
	if text := err.Error(); !strings.Contains(text, "and 90 more") || strings.Contains(text, "a/42") {
		t.Errorf("got %s", text)
	}
}
