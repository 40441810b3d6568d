package replica

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// RecordStore keeps the partition record. Package lease keeps it in a Lease,
// package recordfile in a file.
type RecordStore interface {
	// Get is a quorum read.
	Get(ctx context.Context) (epoch.Snapshot, error)
	// Update swaps base for next. Any error but the sentinels of package epoch leaves
	// the outcome open.
	Update(ctx context.Context, base epoch.Snapshot, next epoch.Record) (epoch.Snapshot, error)
	// Watch delivers changes until ctx ends; it may skip states and lag behind.
	Watch(ctx context.Context, onChange func(epoch.Snapshot), onError func(error)) error
}

// Config is what a replica process is started with.
type Config struct {
	ID      epoch.ReplicaID
	Topic   string
	TopicID epoch.UUID
	// DataDir is the volume; WitnessDir a directory on tmpfs, or empty for none.
	DataDir    string
	WitnessDir string
	// Address is what the record tells clients and peers.
	Address epoch.Address
	// ClientListen, ReplicationListen and HTTPListen are host:port to listen on;
	// an empty one is not served.
	ClientListen      string
	ReplicationListen string
	HTTPListen        string
	// BootID, PodUID and RestartCount tell which machine start, pod and container
	// this is.
	BootID       string
	PodUID       string
	RestartCount int32
	// CheckPod reports an error if this process's own pod is not (any more) what
	// stands in the cluster; nil without a cluster. It is asked after the record that
	// a registration is based on was read.
	CheckPod func(ctx context.Context) error
	// StopTimeout bounds an orderly stop. Default 20 s.
	StopTimeout time.Duration

	Records  RecordStore
	Settings Settings
	// Listeners are those for clients outside of the cluster, at the start.
	Listeners []Listener
	// WatchSpec tells what settings and listeners are to be from then on, until ctx ends; nil
	// if they never change.
	WatchSpec func(ctx context.Context, onChange func(Spec))
	Log       logr.Logger
	Registry  *prometheus.Registry
}

// Spec is what may change while a replica runs.
type Spec struct {
	Settings  Settings
	Listeners []Listener
}

// Settings come from the ReplicatedPartition's spec.
type Settings = node.Settings

// DefaultSettings are the API's defaults.
func DefaultSettings() Settings { return node.DefaultSettings() }

func newID() string { return randomHex(16) }
