package nemesis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/test/nemesis"
)

func TestARoundFollowsFromItsSeed(t *testing.T) {
	draw := func(seed, number uint64) (string, []nemesis.Fault) {
		r := nemesis.NewRound(seed, number)
		var faults []nemesis.Fault
		for range 200 {
			faults = append(faults, r.Next())
		}
		return r.String(), faults
	}
	text, faults := draw(7, 3)
	again, sameFaults := draw(7, 3)
	if text != again || !slices.Equal(faults, sameFaults) {
		t.Errorf("two draws of one seed differ:\n%s\n%s", text, again)
	}
	for _, other := range [][2]uint64{{8, 3}, {7, 4}} {
		if _, f := draw(other[0], other[1]); slices.Equal(f, faults) {
			t.Errorf("seed %d round %d draws the faults of seed 7 round 3", other[0], other[1])
		}
	}
}

func TestManyRoundsHoldEveryKindAndShape(t *testing.T) {
	seen := map[nemesis.Kind]int{}
	replicas := map[int]int{}
	for n := range uint64(200) {
		r := nemesis.NewRound(1, n)
		replicas[r.Shape.Replicas]++
		if r.Shape.MinISR > r.Shape.Replicas || r.Shape.MinISR < 1 {
			t.Errorf("round %d: %s", n, r.Shape)
		}
		for range 50 {
			f := r.Next()
			seen[f.Kind]++
			if !slices.Contains(r.Kinds, f.Kind) {
				t.Errorf("round %d draws %s, which it does not know: %s", n, f.Kind, r)
			}
			if f.Kind == nemesis.LongPause && f.Lasts <= time.Duration(r.Shape.LeaseSeconds)*time.Second {
				t.Errorf("round %d: a long pause of %s, the lease is %d s", n, f.Lasts, r.Shape.LeaseSeconds)
			}
			if f.Kind == nemesis.Scale && f.Number < r.Shape.MinISR {
				t.Errorf("round %d: %s with min ISR %d", n, f, r.Shape.MinISR)
			}
		}
	}
	for _, k := range nemesis.Kinds() {
		if seen[k] == 0 {
			t.Errorf("%s is never drawn", k)
		}
	}
	for _, n := range []int{1, 2, 3, 5} {
		if replicas[n] == 0 {
			t.Errorf("no round has %d replicas", n)
		}
	}
}

// record has replicas 0, 1, 2… with those sessions, of which the given are in sync.
func record(minISR int, isr []epoch.ReplicaID, sessions ...epoch.Session) epoch.Record {
	r := epoch.Record{MinISR: minISR, ISR: isr}
	for i, s := range sessions {
		r.Replicas = append(r.Replicas, epoch.Replica{ID: epoch.ReplicaID(i), Session: s})
	}
	return r
}

func TestFewerThanMinISRReplicasMayLoseTheirData(t *testing.T) {
	all := []epoch.ReplicaID{0, 1, 2}
	two := record(2, all, 5, 6, 7)
	tests := []struct {
		name   string
		noted  []epoch.ReplicaID // with record two
		now    epoch.Record
		wanted int
		id     epoch.ReplicaID
		want   bool
	}{
		{name: "the first of three", now: two, wanted: 2, id: 0, want: true},
		{name: "a second one while the first is away", noted: []epoch.ReplicaID{0}, now: two, wanted: 2, id: 1},
		{name: "the same one again", noted: []epoch.ReplicaID{0}, now: two, wanted: 2, id: 0, want: true},
		{name: "a second one when the first has registered and two are in sync", noted: []epoch.ReplicaID{0}, now: record(2, []epoch.ReplicaID{1, 2}, 8, 6, 7), wanted: 2, id: 1, want: true},
		{name: "a second one when the first has registered and only one is in sync", noted: []epoch.ReplicaID{0}, now: record(2, []epoch.ReplicaID{1}, 8, 6, 7), wanted: 2, id: 1},
		{name: "too few in sync", now: record(2, []epoch.ReplicaID{1}, 5, 6, 7), wanted: 2, id: 1},
		{name: "min ISR 1 stands no loss", now: record(1, all, 5, 6, 7), wanted: 1, id: 0},
		{name: "min ISR is about to fall to 1", now: two, wanted: 1, id: 0},
		{name: "min ISR is about to rise", now: record(1, all, 5, 6, 7), wanted: 2, id: 0},
		{name: "min ISR 3 stands two", noted: []epoch.ReplicaID{0}, now: record(3, all, 5, 6, 7), wanted: 3, id: 1, want: true},
		{name: "but not three", noted: []epoch.ReplicaID{0, 1}, now: record(3, all, 5, 6, 7), wanted: 3, id: 2},
		{name: "the first is not assigned any more", noted: []epoch.ReplicaID{2}, now: record(2, all[:2], 5, 6), wanted: 2, id: 0, want: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var l nemesis.Losses
			for _, id := range tc.noted {
				l.Note(two, id)
			}
			if got := l.Allows(tc.now, tc.wanted, tc.id); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
