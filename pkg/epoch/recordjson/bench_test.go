package recordjson

import (
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// A record as it is after a while: three replicas, as many changes as it remembers.
func worn() epoch.Record {
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1, 2}, 2, "c")
	r.Changes = nil
	for i := range epoch.MaxChanges {
		r.Changes = append(r.Changes, epoch.Change{PartitionEpoch: epoch.PartitionEpoch(i + 1), ID: epoch.ChangeID(fmt.Sprintf("%016x", i)), LeaderEpoch: epoch.LeaderEpoch(i / 4)})
	}
	r.PartitionEpoch, r.LeaderEpoch = epoch.MaxChanges, (epoch.MaxChanges-1)/4
	return r
}

func BenchmarkMarshal(b *testing.B) {
	r := worn()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	text, err := Marshal(worn(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Unmarshal(text); err != nil {
			b.Fatal(err)
		}
	}
}
