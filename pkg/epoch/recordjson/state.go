package recordjson

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Version is the version of the format that this package writes and reads.
const Version = 1

// MaxBytes bounds a text that Unmarshal reads: what a Kubernetes object may carry
// in all its annotations.
const MaxBytes = 256 << 10

var (
	// ErrNewerVersion says that another version of Tidemark wrote the text.
	ErrNewerVersion = errors.New("a newer version of Tidemark wrote the partition record: upgrade this one, or roll the newer one back before its first write")
	// ErrMalformed says that the text is not a record that Tidemark wrote.
	ErrMalformed = errors.New("the partition record is damaged or was edited by hand")
)

// state is the version 1 object. Pointers mark what is absent when there is none.
type state struct {
	Version         int                    `json:"version"`
	TopicID         epoch.UUID             `json:"topicID"`
	PartitionEpoch  epoch.PartitionEpoch   `json:"partitionEpoch"`
	LeaderEpoch     epoch.LeaderEpoch      `json:"leaderEpoch"`
	Leader          epoch.ReplicaID        `json:"leader"`
	LeaderSession   epoch.Session          `json:"leaderSession,omitempty"`
	WantedMinISR    int                    `json:"wantedMinISR"`
	MinISR          int                    `json:"minISR"`
	ISR             []epoch.ReplicaID      `json:"isr"`
	Replicas        []json.RawMessage      `json:"replicas"`
	LastLeader      epoch.LastLeader       `json:"lastLeader"`
	ElectionReason  epoch.ElectionReason   `json:"electionReason,omitempty"`
	Switchover      *epoch.Switchover      `json:"switchover,omitempty"`
	Recovery        *recovery              `json:"recovery,omitempty"`
	Recovered       *epoch.Recovered       `json:"recovered,omitempty"`
	UncleanElection *epoch.UncleanElection `json:"uncleanElection,omitempty"`
	Changes         []epoch.Change         `json:"changes"`
}

// Marshal writes the state of r. previous is the text that r was computed from, or
// nil: fields of it that this program does not know are carried over. Progress and
// Heartbeat are not written. The error wraps ErrMalformed if r breaks what every
// record must hold, or if previous is not a JSON object.
func Marshal(r epoch.Record, previous []byte) ([]byte, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	old, oldReplicas, err := unknownFields(previous)
	if err != nil {
		return nil, err
	}
	s := state{
		Version: Version, TopicID: r.TopicID,
		PartitionEpoch: r.PartitionEpoch, LeaderEpoch: r.LeaderEpoch,
		Leader: r.Leader, LeaderSession: r.LeaderSession,
		WantedMinISR: r.WantedMinISR, MinISR: r.MinISR,
		ISR:        orEmpty(r.ISR),
		Replicas:   make([]json.RawMessage, 0, len(r.Replicas)),
		LastLeader: r.LastLeader, ElectionReason: r.ElectionReason,
		Switchover: r.Switchover, Recovered: r.Recovered, UncleanElection: r.UncleanElection,
		Changes: orEmpty(r.Changes),
	}
	if s.Recovery, err = encodeRecovery(r.Recovery); err != nil {
		return nil, err
	}
	for _, p := range r.Replicas {
		raw, err := withFields(p, oldReplicas[p.ID])
		if err != nil {
			return nil, err
		}
		s.Replicas = append(s.Replicas, raw)
	}
	return withFields(s, old)
}

// Unmarshal reads what Marshal wrote. The error wraps ErrNewerVersion or
// ErrMalformed. Progress and Heartbeat of the result are not set.
func Unmarshal(b []byte) (epoch.Record, error) {
	var s state
	if len(b) > MaxBytes {
		return epoch.Record{}, fmt.Errorf("%w: %d bytes, at most %d are read", ErrMalformed, len(b), MaxBytes)
	}
	m, err := split(b)
	if err != nil {
		return epoch.Record{}, err
	}
	if err := checkVersion(m); err != nil {
		return epoch.Record{}, err
	}
	if err := assign(m, &s); err != nil {
		return epoch.Record{}, err
	}
	r := epoch.Record{
		TopicID:        s.TopicID,
		PartitionEpoch: s.PartitionEpoch, LeaderEpoch: s.LeaderEpoch,
		Leader: s.Leader, LeaderSession: s.LeaderSession,
		WantedMinISR: s.WantedMinISR, MinISR: s.MinISR,
		ISR:        orNil(s.ISR),
		LastLeader: s.LastLeader, ElectionReason: s.ElectionReason,
		Switchover: s.Switchover, Recovered: s.Recovered, UncleanElection: s.UncleanElection,
		Changes: orNil(s.Changes),
	}
	v, err := decodeRecovery(s.Recovery)
	if err != nil {
		return epoch.Record{}, err
	}
	r.Recovery = v
	for _, raw := range s.Replicas {
		var p epoch.Replica
		if err := exact(raw, &p); err != nil {
			return epoch.Record{}, fmt.Errorf("a replica: %w", err)
		}
		r.Replicas = append(r.Replicas, p)
	}
	if err := check(r); err != nil {
		return epoch.Record{}, err
	}
	return r, nil
}

// checkVersion comes before anything else: what a newer version holds may be of
// any shape.
func checkVersion(m fields) error {
	var v int
	if err := json.Unmarshal(m["version"], &v); err != nil || v < 1 {
		return fmt.Errorf("%w: it has no version number", ErrMalformed)
	}
	if v != Version {
		return fmt.Errorf("%w (its version is %d, known here is %d)", ErrNewerVersion, v, Version)
	}
	return nil
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func orNil[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
