package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka's numbers of the served APIs.
const (
	keyProduce              int16 = 0
	keyFetch                int16 = 1
	keyListOffsets          int16 = 2
	keyMetadata             int16 = 3
	keyFindCoordinator      int16 = 10
	keyAPIVersions          int16 = 18
	keyCreateTopics         int16 = 19
	keyDeleteTopics         int16 = 20
	keyDeleteRecords        int16 = 21
	keyInitProducerID       int16 = 22
	keyOffsetForLeaderEpoch int16 = 23
	keyDescribeConfigs      int16 = 32
	keyDescribeCluster      int16 = 60
)

// api is one API key: which versions are served, where, and by what.
type api struct {
	key      int16
	name     string
	min, max int16
	// replication marks an API that replicas use among themselves; clientsOnly is
	// the rest of them.
	replication bool
	// handle answers one request. It runs in the connection's writer, when every
	// earlier request of the connection has been answered. It is nil for Produce,
	// which is submitted when it is read.
	handle func(x *exchange, ctx context.Context, req kmsg.Request) (kmsg.Response, error)
}

// apis lists what is served, in the order in which ApiVersions tells it. Group and
// transaction keys are absent: a client that needs them fails at once and says so.
var apis = []*api{
	apiProduce, apiFetch, apiListOffsets, apiMetadata, apiFindCoordinator, apiAPIVersions,
	apiCreateTopics, apiDeleteTopics, apiDeleteRecords, apiInitProducerID, apiOffsetForLeaderEpoch, apiDescribeConfigs, apiDescribeCluster,
}

// servedOn reports whether the listener serves the key at all (DESIGN.md rule 9).
func (a *api) servedOn(l Listener) bool { return l != Replication || a.replication }

// versions is the range that the listener accepts and advertises.
func (a *api) versions(l Listener) (lo, hi int16) {
	if l == Replication && a.key == keyFetch {
		return replicaFetchMinVersion, a.max
	}
	return a.min, a.max
}
