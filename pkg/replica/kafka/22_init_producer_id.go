package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerId (key 22).
//
// Versions 0 to 5 are served, for idempotent producers: a new id, never used
// before, with epoch 0. v3 lets a client name the id it has, to have its epoch
// raised (KIP-360); it gets a new id, which serves the same end. A transactional id
// is INVALID_REQUEST, which clients take as fatal.
var apiInitProducerID = &api{key: keyInitProducerID, name: "InitProducerId", min: 0, max: 5, handle: (*exchange).initProducerID}

func (x *exchange) initProducerID(ctx context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.InitProducerIDRequest)
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.Version = x.version
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = x.fail(CodeInvalidRequest)
		return resp, nil
	}
	id, producerEpoch, err := x.Partition.AllocateProducerID(ctx)
	if err != nil {
		resp.ErrorCode = int16(x.initProducerCode(err))
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, producerEpoch
	return resp, nil
}

// initProducerCode replaces codes that clients do not expect from this API, and
// would give up on, by the one that all of them retry without looking for a
// coordinator first. Clients ask any replica, so a follower answers this too.
func (x *exchange) initProducerCode(err error) Code {
	switch code := x.code(err); code {
	case CodeNotLeaderOrFollower, CodeRequestTimedOut, CodeNotEnoughReplicas, CodeNotEnoughReplicasAfterAppend, CodeKafkaStorageError:
		return CodeCoordinatorLoadInProgress
	default:
		return code
	}
}
