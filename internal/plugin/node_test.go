package plugin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node is a Node object with what the API server needs of its kubelet: it forwards
// connections to pods, whose ports are ports of this machine, and hands out logs.
type node struct {
	server *httptest.Server
	mu     sync.Mutex
	logs   map[string]string // by pod
}

const nodeName = "node-1"

func startNode(api client.Client) (*node, error) {
	n := &node{logs: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.forward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, _ = io.WriteString(w, n.logs[r.PathValue("pod")])
	})
	n.server = httptest.NewTLSServer(mux)
	u, err := url.Parse(n.server.URL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, err
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := api.Create(context.Background(), o); err != nil {
		return nil, err
	}
	o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: u.Hostname()}}
	o.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	return n, api.Status().Update(context.Background(), o)
}

func (n *node) setLog(pod, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.logs[pod] = text
}

// forward serves the protocol of kubectl port-forward: a stream for errors and one for data
// make a connection.
func (n *node) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	var mu sync.Mutex
	troubles := map[string]httpstream.Stream{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		mu.Lock()
		defer mu.Unlock()
		id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			troubles[id] = s
			return nil
		}
		go connect(s, troubles[id])
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	<-conn.CloseChan()
}

func connect(data, trouble httpstream.Stream) {
	defer trouble.Close()
	defer data.Close()
	port := data.Headers().Get(corev1.PortHeader)
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		fmt.Fprintf(trouble, "error forwarding port %s: %v\n", port, err)
		return
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(c, data)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(data, c)
}
