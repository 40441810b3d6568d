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

// threeOfA is a producer "a" that sent three records: two acknowledged at 0 and 1, the last without an answer.
func threeOfA() *history.Log {
	l := history.NewLog()
	for range 3 {
		l.Send("a")
	}
	l.Acked("a", 0, 0)
	l.Acked("a", 1, 1)
	return l
}

func TestCheckFindsEveryKindOfFault(t *testing.T) {
	tests := []struct {
		name   string
		final  []history.Record
		during []history.Record
		want   []string // kinds, in the order found
	}{
		{name: "all there", final: read("a/0", "a/1", "a/2")},
		{name: "a record without an answer may be absent", final: read("a/0", "a/1")},
		{name: "an acknowledged record is gone", final: read("a/0"), want: []string{"lost"}},
		{name: "the log is empty", final: nil, want: []string{"lost", "lost"}},
		{name: "acknowledged records moved by one that was never acknowledged", final: read("a/2", "a/0", "a/1"),
			want: []string{"reordered", "reordered", "lost", "lost"}},
		{name: "a retry was written again", final: read("a/0", "a/1", "a/1"), want: []string{"doubled"}},
		{name: "an unanswered record is there twice", final: read("a/0", "a/1", "a/2", "a/2"), want: []string{"doubled"}},
		{name: "nobody sent it", final: read("a/0", "a/1", "b/0"), want: []string{"foreign"}},
		{name: "a number beyond what was sent", final: read("a/0", "a/1", "a/3"), want: []string{"foreign"}},
		{name: "bytes changed", final: read("a/0", "a/1", "a/02"), want: []string{"foreign"}},
		{name: "a hole between offsets", final: []history.Record{{Offset: 0, Value: "a/0"}, {Offset: 1, Value: "a/1"}, {Offset: 3, Value: "a/2"}},
			want: []string{"torn"}},
		{name: "an early reader saw a prefix", final: read("a/0", "a/1", "a/2"), during: read("a/0", "a/1")},
		{name: "an early reader saw what is gone", final: read("a/0", "a/1"), during: read("a/0", "a/1", "a/2"), want: []string{"unstable"}},
		{name: "an early reader saw another record there", final: read("a/0", "a/1"), during: read("a/0", "a/2"), want: []string{"unstable"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := threeOfA().Check(tc.final, tc.during)
			var got []string
			for _, f := range v.Faults {
				got = append(got, f.Kind)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("final %v, during %v:\ngot  %v\nwant kinds %v", tc.final, tc.during, v.Faults, tc.want)
			}
			if (v.Err() == nil) != (len(tc.want) == 0) {
				t.Errorf("Err() = %v with faults %v", v.Err(), v.Faults)
			}
		})
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
	if v.Sent != 7 || v.Acked != 6 || v.Failed != 1 || v.Unasked != 1 {
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
