package epoch

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

type (
	// ReplicaID is the stable small number of a replica, Kafka's broker id.
	ReplicaID int32
	// LeaderEpoch counts the elections of a partition (KIP-101). Batches carry
	// the epoch of the leader that wrote them.
	LeaderEpoch int32
	// PartitionEpoch counts the changes of the partition's record.
	PartitionEpoch int64
	// Session names one registered process of a replica, Kafka's broker epoch: the
	// partition epoch that its registration wrote, so it is never used twice.
	Session int64
	// Offset is the position of a record in the log.
	Offset int64
	// ChangeID is random and names one change of the record, so that two
	// histories with equal counters can be told apart.
	ChangeID string
	// StartID is random and names one start of a replica process.
	StartID string
)

const (
	// NoReplica stands for "no leader".
	NoReplica ReplicaID = -1
	// NoEpoch stands for "epoch not known"; Kafka's -1.
	NoEpoch LeaderEpoch = -1
	// NoSession is the session of a replica that has never registered.
	NoSession Session = 0
	// NoOffset stands for "offset not known"; Kafka's -1.
	NoOffset Offset = -1
)

func (id ReplicaID) String() string { return strconv.Itoa(int(id)) }

// UUID is a 128-bit id as Kafka uses it for topics and log directories.
// The zero value means "none".
type UUID [16]byte

// String gives Kafka's text form: unpadded URL-safe base64, 22 characters.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// Canonical gives the form that Kubernetes prints a UID in: 8-4-4-4-12 hex digits.
func (u UUID) Canonical() string {
	h := hex.EncodeToString(u[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// IsZero reports whether u is the zero value, "none".
func (u UUID) IsZero() bool { return u == UUID{} }

// ParseUUID reads either text form.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	var b []byte
	var err error
	if len(s) == 36 {
		b, err = hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	} else {
		b, err = base64.RawURLEncoding.DecodeString(s)
	}
	if err != nil || len(b) != len(u) {
		return u, fmt.Errorf("%q is not a UUID in Kafka's or Kubernetes' form", s)
	}
	copy(u[:], b)
	return u, nil
}

// MarshalText implements encoding.TextMarshaler with Kafka's form; none is "".
func (u UUID) MarshalText() ([]byte, error) {
	if u.IsZero() {
		return nil, nil
	}
	return []byte(u.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler for both forms.
func (u *UUID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*u = UUID{}
		return nil
	}
	v, err := ParseUUID(string(b))
	if err != nil {
		return err
	}
	*u = v
	return nil
}
