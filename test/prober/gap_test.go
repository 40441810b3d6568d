package prober

import (
	"testing"
	"time"
)

func TestLongestGapIsTheOutageNotTheAnswersUnderWay(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms ...int) []time.Time {
		var ts []time.Time
		for _, m := range ms {
			ts = append(ts, start.Add(time.Duration(m)*time.Millisecond))
		}
		return ts
	}
	tests := []struct {
		name     string
		acks     []time.Time
		after    int
		from, to int
	}{
		{name: "answers under way come after the fault", acks: at(0, 5, 10, 12, 900, 905), after: 8, from: 12, to: 900},
		{name: "an earlier, longer outage is another one", acks: at(0, 2000, 2005, 2300), after: 2001, from: 2005, to: 2300},
		{name: "the outage that was going on counts", acks: at(0, 500, 505), after: 100, from: 0, to: 500},
		{name: "no acknowledgement afterwards", acks: at(0, 5), after: 10},
		{name: "none at all", after: 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := longest(tc.acks, at(tc.after)[0])
			want := Gap{}
			if tc.to != 0 {
				want = Gap{at(tc.from)[0], at(tc.to)[0]}
			}
			if got != want {
				t.Errorf("longest(%v, %d ms) = %v, want %v", tc.acks, tc.after, got, want)
			}
		})
	}
}
