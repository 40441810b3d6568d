package forward

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Dialer connects to pods.
type Dialer struct {
	// Config of the API server.
	Config *rest.Config
	// Pods is a client of the core group.
	Pods rest.Interface
}

// Dial connects to a port of a pod, which listens on it, or the first use of the connection
// fails and says why.
func (d *Dialer) Dial(ctx context.Context, namespace, pod string, port int) (*Conn, error) {
	at := d.Pods.Get().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	type result struct {
		streams httpstream.Connection
		err     error
	}
	dialed := make(chan result, 1)
	go func() {
		c, err := d.upgrade(at)
		dialed <- result{c, err}
	}()
	select {
	case r := <-dialed:
		if r.err != nil {
			return nil, fmt.Errorf("reach pod %s in namespace %s through the API server: %w", pod, namespace, r.err)
		}
		c, err := newConn(r.streams, pod, port)
		if err != nil {
			_ = r.streams.Close()
			return nil, fmt.Errorf("reach port %d of pod %s: %w", port, pod, err)
		}
		return c, nil
	case <-ctx.Done():
		go func() { // the call itself cannot be interrupted
			if r := <-dialed; r.err == nil {
				_ = r.streams.Close()
			}
		}()
		return nil, fmt.Errorf("reach pod %s through the API server: %w", pod, ctx.Err())
	}
}

// upgrade makes a connection that carries streams: over a websocket, or, where an older API
// server or a proxy does not let that through, over SPDY, as kubectl does.
func (d *Dialer) upgrade(at *url.URL) (httpstream.Connection, error) {
	transport, upgrader, err := spdy.RoundTripperFor(d.Config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, d.Config)
	if err != nil {
		return nil, err
	}
	both := portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	c, protocol, err := both.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = c.Close()
		return nil, fmt.Errorf("the API server speaks protocol %q, not %q", protocol, portforward.PortForwardProtocolV1Name)
	}
	return c, nil
}
