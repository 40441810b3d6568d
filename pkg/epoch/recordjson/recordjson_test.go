package recordjson

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson/recordgen"
)

func TestUnmarshalOfMarshalIsTheSameRecord(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want := recordgen.Record(rng)
		b, err := Marshal(want, nil)
		if err != nil {
			t.Fatalf("seed %d: Marshal(%+v): %v", seed, want, err)
		}
		got, err := Unmarshal(b)
		if err != nil {
			t.Fatalf("seed %d: Unmarshal(%s): %v", seed, b, err)
		}
		want.Progress, want.Heartbeat = nil, epoch.Heartbeat{}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v\ntext %s", seed, got, want, b)
		}
	}
}

func TestProgressSurvivesTheRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		want := recordgen.Progress(rand.New(rand.NewPCG(seed, 2)), 5)
		b, err := MarshalProgress(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnmarshalProgress(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got %+v, %v, want %+v", seed, got, err, want)
		}
	}
}

func TestFieldsOfANewerProgramOfTheSameVersionSurvive(t *testing.T) {
	r := recordgen.Record(rand.New(rand.NewPCG(7, 7)))
	r.Replicas = []epoch.Replica{{ID: 1}, {ID: 4}}
	r.ISR, r.Leader, r.LeaderSession = []epoch.ReplicaID{1}, epoch.NoReplica, 0
	b, err := Marshal(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	m["quorum"], m["LEADER"] = map[string]any{"a": 1}, 99
	m["replicas"].([]any)[1].(map[string]any)["zone"] = "z1"
	newer, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}

	read, err := Unmarshal(newer)
	if err != nil {
		t.Fatal(err)
	}
	if read.Leader != epoch.NoReplica {
		t.Errorf("the key LEADER was taken for leader: %d", read.Leader)
	}
	read.Replicas = append(read.Replicas, epoch.Replica{ID: 5})
	again, err := Marshal(read, newer)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"quorum":{"a":1}`, `"LEADER":99`, `{"id":4,"lastEpoch":0,"logEndOffset":0,"zone":"z1"}`, `{"id":5,"lastEpoch":0,"logEndOffset":0}`} {
		if !strings.Contains(string(again), want) {
			t.Errorf("%s is not in %s", want, again)
		}
	}
	if got, err := Unmarshal(again); err != nil || !reflect.DeepEqual(got, read) {
		t.Errorf("the re-encoded text reads as %+v, %v", got, err)
	}
}

// edit replaces one top-level field of a valid text; "" removes it.
func edit(t *testing.T, key, value string) []byte {
	t.Helper()
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1, 2}, 2, "c")
	b, err := Marshal(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, key)
	if value != "" {
		m[key] = json.RawMessage(value)
	}
	b, err = json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const replica0 = `{"id":0,"lastEpoch":0,"logEndOffset":0}`

func TestUnmarshalRefuses(t *testing.T) {
	for _, c := range []struct {
		name, key, value, message string
		want                      error
	}{
		{"a newer version", "version", "2", "version is 2", ErrNewerVersion},
		{"no version", "version", "", "no version", ErrMalformed},
		{"a version that is text", "version", `"1"`, "no version", ErrMalformed},
		{"no leader", "leader", "", `no "leader"`, ErrMalformed},
		{"a null leader epoch", "leaderEpoch", "null", `no "leaderEpoch"`, ErrMalformed},
		{"no topic id", "topicID", `""`, "topic id", ErrMalformed},
		{"a topic id that is none", "topicID", `"nonsense"`, "UUID", ErrMalformed},
		{"a leader that is not in sync", "leader", "7", "leader 7 is not in sync", ErrMalformed},
		{"a leader below -1", "leader", "-3", "leader -3", ErrMalformed},
		{"an in-sync replica that is not assigned", "isr", "[0,9]", "replica 9 is not assigned", ErrMalformed},
		{"an in-sync replica twice", "isr", "[1,1]", "does not follow", ErrMalformed},
		{"a replica twice", "replicas", `[` + replica0 + `,` + replica0 + `]`, "does not follow", ErrMalformed},
		{"a replica without id", "replicas", `[{"lastEpoch":0,"logEndOffset":0}]`, `no "id"`, ErrMalformed},
		{"a session from the future", "replicas", `[{"id":0,"session":50,"lastEpoch":0,"logEndOffset":0}]`, "session 50", ErrMalformed},
		{"an epoch other than the last change's", "partitionEpoch", "9", "last change", ErrMalformed},
		{"a partition epoch of 0", "partitionEpoch", "0", "below 1", ErrMalformed},
		{"an epoch too large to be one", "leaderEpoch", "4294967296", "cannot unmarshal", ErrMalformed},
		{"changes that go back", "changes", `[{"p":2,"id":"a","l":0},{"p":1,"id":"c","l":0}]`, "go back", ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Unmarshal(edit(t, c.key, c.value))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v, want %v about %q", err, c.want, c.message)
			}
		})
	}
	for _, text := range []string{"", "null", "[]", "{", `{"version":1} x`, strings.Repeat(" ", MaxBytes+1)} {
		if _, err := Unmarshal([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("Unmarshal(%.20q) = %v, want ErrMalformed", text, err)
		}
	}
}

func TestMarshalRefusesARecordThatCouldNotBeReadBack(t *testing.T) {
	r := epoch.New(epoch.UUID{1}, []epoch.ReplicaID{0, 1}, 1, "c")
	r.Leader = 5
	if b, err := Marshal(r, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %s, %v", b, err)
	}
	r.Leader = epoch.NoReplica
	if b, err := Marshal(r, []byte(`{"version":2}`)); !errors.Is(err, ErrNewerVersion) {
		t.Errorf("over a newer text: got %s, %v", b, err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for seed := range uint64(5) {
		b, err := Marshal(recordgen.Record(rand.New(rand.NewPCG(seed, 3))), nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Unmarshal(b)
		if err != nil {
			return
		}
		again, err := Marshal(r, b)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if got, err := Unmarshal(again); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v, want %+v", got, err, r)
		}
	})
}

func FuzzUnmarshalProgress(f *testing.F) {
	b, err := MarshalProgress(recordgen.Progress(rand.New(rand.NewPCG(1, 4)), 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := UnmarshalProgress(b)
		if err != nil {
			return
		}
		again, err := MarshalProgress(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := UnmarshalProgress(again); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("got %+v, %v, want %+v", got, err, p)
		}
	})
}
