package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator (key 10).
//
// Versions 0 to 4 are served, and always refused: for groups with
// COORDINATOR_NOT_AVAILABLE, which clients retry, since groups may come one day; for
// transactions with INVALID_REQUEST, so that a client that begins one fails at once
// and does not wait for a coordinator that there is none of. The key is advertised
// all the same, because librdkafka derives from it whether it may compress with lz4.
// v1 adds the message, v3 is flexible, v4 asks for several keys.
var apiFindCoordinator = &api{key: keyFindCoordinator, name: "FindCoordinator", min: 0, max: 4, handle: (*exchange).findCoordinator}

const (
	findCoordinatorFirstBatched = 4
	coordinatorTypeTransaction  = 1

	groupsRefused = "consumer groups are not served yet; read with assign() instead of subscribe()"
)

func (x *exchange) findCoordinator(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.FindCoordinatorRequest)
	resp := kmsg.NewPtrFindCoordinatorResponse()
	resp.Version = x.version
	code, message := CodeCoordinatorNotAvailable, groupsRefused
	if req.CoordinatorType == coordinatorTypeTransaction {
		code, message = CodeInvalidRequest, transactionsRefused
	}
	if x.version < findCoordinatorFirstBatched {
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Port = x.fail(code), &message, -1, -1
		return resp, nil
	}
	for _, key := range req.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.Port = key, -1, -1
		c.ErrorCode, c.ErrorMessage = x.fail(code), &message
		resp.Coordinators = append(resp.Coordinators, c)
	}
	return resp, nil
}
