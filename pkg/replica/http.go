package replica

import (
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/core"
)

// Status is what /v1/status answers.
type Status struct {
	// Phase is Starting, Recovering, Registering, Serving or Stopping.
	Phase          string               `json:"phase"`
	Message        string               `json:"message,omitempty"`
	Topic          string               `json:"topic"`
	Replica        epoch.ReplicaID      `json:"replica"`
	Role           string               `json:"role,omitempty"`
	Leader         epoch.ReplicaID      `json:"leader"`
	LeaderEpoch    epoch.LeaderEpoch    `json:"leaderEpoch"`
	PartitionEpoch epoch.PartitionEpoch `json:"partitionEpoch"`
	HighWatermark  epoch.Offset         `json:"highWatermark"`
	LogEndOffset   epoch.Offset         `json:"logEndOffset"`
	LogStartOffset epoch.Offset         `json:"logStartOffset"`
	LiveISR        []epoch.ReplicaID    `json:"liveISR,omitempty"`
	DirectoryID    string               `json:"directoryID,omitempty"`
	Session        epoch.Session        `json:"session,omitempty"`
	// Listeners are those for clients outside of the cluster.
	Listeners []ListenerStatus `json:"listeners,omitempty"`
}

// front is the HTTP side of a process: it answers from the first moment on, while
// the log is still being recovered.
type front struct {
	base    Status
	phase   atomic.Pointer[phase]
	replica atomic.Pointer[Replica]
	outside atomic.Pointer[outside]
	// checksums holds one token while a checksum is made.
	checksums chan struct{}
}

type phase struct{ name, message string }

func newFront(cfg Config) *front {
	f := &front{base: Status{Topic: cfg.Topic, Replica: cfg.ID, Leader: epoch.NoReplica}, checksums: make(chan struct{}, 1)}
	f.enter("Starting", "")
	return f
}

func (f *front) enter(name, message string) { f.phase.Store(&phase{name, message}) }

func (f *front) status() Status {
	s := f.base
	p := f.phase.Load()
	s.Phase, s.Message = p.name, p.message
	if r := f.replica.Load(); r != nil {
		v := r.view()
		s.Role, s.Leader, s.LeaderEpoch, s.PartitionEpoch = v.Role.String(), v.Leader, v.LeaderEpoch, v.PartitionEpoch
		s.HighWatermark, s.LogEndOffset, s.LogStartOffset, s.LiveISR = v.HighWatermark, v.LogEndOffset, v.LogStartOffset, v.LiveISR
		s.DirectoryID, s.Session = r.identity.DirectoryID.String(), r.identity.Session
	}
	if o := f.outside.Load(); o != nil {
		s.Listeners = o.status()
	}
	return s
}

// ready: it can serve clients truthfully, since it leads or knows who does.
func (f *front) ready() bool {
	r := f.replica.Load()
	return r != nil && r.view().Role != core.Idle && f.phase.Load().name == "Serving"
}

func (f *front) handler(reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !f.ready() {
			http.Error(w, "not ready: "+f.phase.Load().name+" "+f.phase.Load().message, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(f.status())
	})
	mux.HandleFunc("GET /v1/checksum", f.checksum)
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	return mux
}

// serve answers HTTP until the returned function is called.
func (f *front) serve(address string, reg *prometheus.Registry) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: f.handler(reg), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(ln) }()
	return func() { _ = srv.Close() }, nil
}
