package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster (key 60).
//
// Versions 0 to 2 are served. The brokers, the cluster id and the controller are
// those that Metadata tells. v1 asks for a kind of endpoint: only brokers (1) are
// here, controllers (2) are UNSUPPORTED_VERSION, since the Kubernetes API is the
// controller.
var apiDescribeCluster = &api{key: keyDescribeCluster, name: "DescribeCluster", min: 0, max: 2, handle: (*exchange).describeCluster}

const (
	describeClusterFirstEndpoint = 1
	endpointBrokers              = 1
)

func (x *exchange) describeCluster(_ context.Context, untyped kmsg.Request) (kmsg.Response, error) {
	req := untyped.(*kmsg.DescribeClusterRequest)
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.Version = x.version
	resp.EndpointType = endpointBrokers
	if x.version >= describeClusterFirstEndpoint && req.EndpointType != endpointBrokers {
		message := "only broker endpoints exist: the Kubernetes API is the controller"
		resp.ErrorCode, resp.ErrorMessage, resp.EndpointType = x.fail(CodeUnsupportedVersion), &message, req.EndpointType
		return resp, nil
	}
	view := x.shown()
	resp.ClusterID = view.TopicID.String()
	resp.ControllerID = int32(view.controller())
	for _, n := range view.Replicas {
		if n.Address.Host == "" {
			continue
		}
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port = int32(n.ID), n.Address.Host, x.port(n.Address)
		resp.Brokers = append(resp.Brokers, b)
	}
	return resp, nil
}
