package lease

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// DefaultTimeout bounds one call of a Store.
const DefaultTimeout = 5 * time.Second

// Config says which Lease a Store keeps the record in.
type Config struct {
	// Client comes from NewClient.
	Client rest.Interface
	// Namespace and Name of the Lease.
	Namespace, Name string
	// TopicID is the UID of the ReplicatedPartition. A Lease of another is foreign.
	TopicID epoch.UUID
	// Timeout bounds each call but Watch; 0 means DefaultTimeout. A write that runs
	// into it is undecided: it may still land.
	Timeout time.Duration
	// Log gets the transitions of the watch; the zero value discards them.
	Log logr.Logger
}

// Store reads and writes the record in one Lease. It has no state: any number of
// goroutines may use it, though a writer of the record has one write outstanding.
type Store struct {
	cfg Config
}

// New makes a Store. It does not contact the API server.
func New(cfg Config) (*Store, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("record store: no client")
	case cfg.Namespace == "" || cfg.Name == "":
		return nil, fmt.Errorf("record store: Lease %q in namespace %q: both names are needed", cfg.Name, cfg.Namespace)
	case cfg.TopicID.IsZero():
		return nil, errors.New("record store: no topic id, which is the UID of the ReplicatedPartition")
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("record store: timeout %v is negative", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Store{cfg: cfg}, nil
}

// Get is a quorum read: it returns the newest state or an error, never a cached
// one. The error wraps [epoch.ErrNotFound], or is one of Decode's; Version and
// Object of the snapshot are set also when only decoding failed.
func (s *Store) Get(ctx context.Context) (epoch.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var l coordinationv1.Lease
	// No resourceVersion: that is what makes the read a quorum read.
	if err := s.request(s.cfg.Client.Get()).Name(s.cfg.Name).Do(ctx).Into(&l); err != nil {
		return epoch.Snapshot{}, fmt.Errorf("read %s: %w", s, readError(err))
	}
	return s.snapshot(&l)
}

// Create writes the record of a new partition. Of meta only labels, annotations,
// owner references and finalizers are used. The error wraps [epoch.ErrConflict] if
// the Lease exists already, whoever made it, or [epoch.ErrRejected]; with any other
// error it is undecided whether it was written.
func (s *Store) Create(ctx context.Context, r epoch.Record, meta metav1.ObjectMeta) (epoch.Snapshot, error) {
	l, err := s.encode(r, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.cfg.Namespace, Name: s.cfg.Name,
		Labels: meta.Labels, Annotations: meta.Annotations,
		OwnerReferences: meta.OwnerReferences, Finalizers: meta.Finalizers,
	}})
	if err != nil {
		return epoch.Snapshot{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var written coordinationv1.Lease
	if err := s.request(s.cfg.Client.Post()).Body(l).Do(ctx).Into(&written); err != nil {
		return epoch.Snapshot{}, fmt.Errorf("create %s: %w", s, createError(err))
	}
	return s.written(&written, r)
}

// Update replaces the record if the Lease is still as base was read. It sends one
// request and never repeats it. The error wraps [epoch.ErrConflict] (it moved on, or
// was made anew), [epoch.ErrNotFound] or [epoch.ErrRejected], and then nothing was
// written; with any other error, those of ctx included, the write is undecided until
// a read shows a Version other than base's.
//
// A proxy on the way that sends a request again may turn a write that landed into
// ErrConflict: whoever must know looks for its own change id in the record.
func (s *Store) Update(ctx context.Context, base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error) {
	old, ok := base.Object.(*coordinationv1.Lease)
	if !ok || old.ResourceVersion == "" || old.UID == "" || old.Name != s.cfg.Name || old.Namespace != s.cfg.Namespace {
		return epoch.Snapshot{}, fmt.Errorf("update %s: %w: the base was not read from this store", s, epoch.ErrRejected)
	}
	l, err := s.encode(next, old)
	if err != nil {
		return epoch.Snapshot{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var written coordinationv1.Lease
	if err := s.request(s.cfg.Client.Put()).Name(s.cfg.Name).Body(l).Do(ctx).Into(&written); err != nil {
		return epoch.Snapshot{}, fmt.Errorf("update %s: %w", s, writeError(err))
	}
	return s.written(&written, next)
}

// String names the Lease, for messages.
func (s *Store) String() string { return "Lease " + s.cfg.Namespace + "/" + s.cfg.Name }

// encode refuses before anything is sent, so its errors are ErrRejected.
func (s *Store) encode(r epoch.Record, base *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if r.TopicID != s.cfg.TopicID {
		return nil, fmt.Errorf("write %s: %w: the record has topic id %s, this partition is %s",
			s, epoch.ErrRejected, r.TopicID.Canonical(), s.cfg.TopicID.Canonical())
	}
	l, err := Encode(r, base)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w: %w", s, epoch.ErrRejected, err)
	}
	return l, nil
}

// request prepares any call. client-go repeats what a server answers with
// Retry-After, up to ten times; a repeated write could be refused for the sake of
// its own first copy and be taken for not written, so nothing is repeated here.
func (s *Store) request(r *rest.Request) *rest.Request {
	return r.MaxRetries(0).Namespace(s.cfg.Namespace).Resource("leases")
}

func (s *Store) snapshot(l *coordinationv1.Lease) (epoch.Snapshot, error) {
	snap := epoch.Snapshot{Version: l.ResourceVersion, Object: l}
	r, err := Decode(l, s.cfg.TopicID)
	snap.Record = r
	return snap, err
}

// written checks that the API server kept what it was sent: a webhook that prunes
// what it does not know would lose epochs in silence.
func (s *Store) written(l *coordinationv1.Lease, want epoch.Record) (epoch.Snapshot, error) {
	snap, err := s.snapshot(l)
	if err != nil {
		return snap, fmt.Errorf("%s reads back wrong after a write: %w", s, err)
	}
	got := snap.Record
	if got.PartitionEpoch != want.PartitionEpoch || got.LeaderEpoch != want.LeaderEpoch ||
		got.Leader != want.Leader || !reflect.DeepEqual(got.LastChange(), want.LastChange()) {
		return snap, fmt.Errorf("%s reads back wrong after a write: got partition epoch %d, leader %d in epoch %d; a webhook changed it",
			s, got.PartitionEpoch, got.Leader, got.LeaderEpoch)
	}
	return snap, nil
}
