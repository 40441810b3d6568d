package lease

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

// The annotations of the record.
const (
	AnnotationPartitionEpoch = "tidemark.io/partition-epoch"
	AnnotationState          = "tidemark.io/state"
	AnnotationProgress       = "tidemark.io/progress"
)

// ErrEdited says that the parts of the Lease contradict each other, or cannot be
// read: somebody edited it by hand. Put back what `kubectl get lease -o yaml` shows
// in the state annotation.
var ErrEdited = errors.New("the Lease was edited by hand")

// HolderIdentity is the name of a replica as the Lease shows it, "" for NoReplica.
func HolderIdentity(leaseName string, id epoch.ReplicaID) string {
	if id == epoch.NoReplica {
		return ""
	}
	return leaseName + "-" + id.String()
}

// Encode writes r into a deep copy of base, which must have a name. What the record
// does not own survives: labels, owners, finalizers, other annotations, and fields
// of the state that a newer program wrote. The heartbeat is kept in microseconds
// and its duration in whole seconds, rounded up. The error says why r cannot be
// written (it breaks an invariant) or why base cannot be overwritten (a newer
// version wrote it).
func Encode(r epoch.Record, base *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if base == nil || base.Name == "" {
		return nil, errors.New("encode the partition record: no Lease with a name to write it into")
	}
	state, err := encodeState(r, base.Annotations[AnnotationState])
	if err != nil {
		return nil, fmt.Errorf("encode the partition record into Lease %s: %w", base.Name, err)
	}
	l := base.DeepCopy()
	if l.Annotations == nil {
		l.Annotations = make(map[string]string, 3)
	}
	l.Annotations[AnnotationState] = state
	l.Annotations[AnnotationPartitionEpoch] = strconv.FormatInt(int64(r.PartitionEpoch), 10)
	delete(l.Annotations, AnnotationProgress)
	if r.Progress != nil {
		p, err := recordjson.MarshalProgress(*r.Progress)
		if err != nil {
			return nil, err
		}
		l.Annotations[AnnotationProgress] = string(p)
	}
	holder, transitions := HolderIdentity(base.Name, r.Leader), int32(r.LeaderEpoch)
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, &transitions
	encodeHeartbeat(r.Heartbeat, &l.Spec)
	return l, nil
}

// encodeState keeps the text as it is when it says the same already, so that a
// heartbeat changes no more than the heartbeat.
func encodeState(r epoch.Record, previous string) (string, error) {
	b, err := recordjson.Marshal(r, []byte(previous))
	if err != nil {
		return "", err
	}
	if old, err := recordjson.Unmarshal([]byte(previous)); err == nil {
		if same, err := recordjson.Marshal(old, []byte(previous)); err == nil && bytes.Equal(same, b) {
			return previous, nil
		}
	}
	return string(b), nil
}

func encodeHeartbeat(h epoch.Heartbeat, spec *coordinationv1.LeaseSpec) {
	spec.RenewTime, spec.AcquireTime = microTime(h.Renewed), microTime(h.Acquired)
	spec.LeaseDurationSeconds = nil
	if h.Duration > 0 {
		s := int32(min((h.Duration+time.Second-1)/time.Second, math.MaxInt32))
		spec.LeaseDurationSeconds = &s
	}
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: t.Truncate(time.Microsecond)}
}

// Decode reads the record of the partition with that topic id. The error wraps
// [epoch.ErrForeign] if the Lease is not that partition's record,
// [recordjson.ErrNewerVersion] if a newer Tidemark wrote it, and [ErrEdited] if its
// parts contradict each other or cannot be read.
func Decode(l *coordinationv1.Lease, topicID epoch.UUID) (epoch.Record, error) {
	text, ok := l.Annotations[AnnotationState]
	if !ok {
		return epoch.Record{}, fmt.Errorf("lease %s has no annotation %s: %w; delete that Lease or give the ReplicatedPartition another name",
			l.Name, AnnotationState, epoch.ErrForeign)
	}
	r, err := recordjson.Unmarshal([]byte(text))
	switch {
	case errors.Is(err, recordjson.ErrNewerVersion):
		return epoch.Record{}, fmt.Errorf("lease %s: %w", l.Name, err)
	case err != nil:
		return epoch.Record{}, fmt.Errorf("%w: annotation %s of Lease %s: %w", ErrEdited, AnnotationState, l.Name, err)
	case r.TopicID != topicID:
		return epoch.Record{}, fmt.Errorf("lease %s belongs to topic id %s, this partition is %s: %w",
			l.Name, r.TopicID.Canonical(), topicID.Canonical(), epoch.ErrForeign)
	}
	if msg := contradiction(r, l); msg != "" {
		return epoch.Record{}, fmt.Errorf("%w: Lease %s: %s", ErrEdited, l.Name, msg)
	}
	if text, ok := l.Annotations[AnnotationProgress]; ok {
		p, err := recordjson.UnmarshalProgress([]byte(text))
		if err != nil {
			return epoch.Record{}, fmt.Errorf("%w: annotation %s of Lease %s: %w", ErrEdited, AnnotationProgress, l.Name, err)
		}
		r.Progress = &p
	}
	r.Heartbeat = decodeHeartbeat(l.Spec)
	return r, nil
}

// contradiction compares what the Lease tells twice.
func contradiction(r epoch.Record, l *coordinationv1.Lease) string {
	var holder string
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	var transitions int32
	if l.Spec.LeaseTransitions != nil {
		transitions = *l.Spec.LeaseTransitions
	}
	var diff []string
	note := func(field, got, want string) {
		if got != want {
			diff = append(diff, fmt.Sprintf("%s is %q, the state says %q", field, got, want))
		}
	}
	note("spec.holderIdentity", holder, HolderIdentity(l.Name, r.Leader))
	note("spec.leaseTransitions", strconv.Itoa(int(transitions)), strconv.Itoa(int(r.LeaderEpoch)))
	note("annotation "+AnnotationPartitionEpoch, l.Annotations[AnnotationPartitionEpoch], strconv.FormatInt(int64(r.PartitionEpoch), 10))
	return strings.Join(diff, "; ")
}

func decodeHeartbeat(spec coordinationv1.LeaseSpec) epoch.Heartbeat {
	var h epoch.Heartbeat
	if spec.RenewTime != nil {
		h.Renewed = spec.RenewTime.UTC()
	}
	if spec.AcquireTime != nil {
		h.Acquired = spec.AcquireTime.UTC()
	}
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds > 0 {
		h.Duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return h
}
