package replica

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
	"github.com/tidemark-io/tidemark/pkg/replica/node"
)

// Listener is one for clients outside of the cluster.
type Listener struct {
	// Name is unique among the listeners of a replica.
	Name string
	// Listen is the host:port to listen on.
	Listen string
	// Advertised is where its clients reach each replica, as far as that is known.
	Advertised map[epoch.ReplicaID]kafka.Endpoint
}

// ListenerStatus is what /v1/status tells of a listener.
type ListenerStatus struct {
	Name   string `json:"name"`
	Listen string `json:"listen"`
	// Open tells that connections are accepted; Error why they are not.
	Open  bool   `json:"open"`
	Error string `json:"error,omitempty"`
}

const (
	// A port that cannot be listened on is tried again after minRebind, and then after twice
	// as long each time, up to maxRebind.
	minRebind = 250 * time.Millisecond
	maxRebind = 15 * time.Second
)

// outside holds the open listeners for clients outside of the cluster. One goroutine calls
// set and stop; status may be called by any.
type outside struct {
	serve func(ctx context.Context, l *openListener) error
	log   logr.Logger
	// changed is told whether a listener that should be open is not.
	changed func(deaf bool)

	mu   sync.Mutex
	open []*openListener // in the order of the spec
}

// openListener is a listener that is open, or tried again until it is.
type openListener struct {
	name, listen string
	advertised   atomic.Pointer[map[epoch.ReplicaID]kafka.Endpoint]
	cancel       context.CancelFunc
	done         chan struct{}
	// err is why it is not open at the moment; guarded by outside.mu, as is bound.
	err   error
	bound bool
}

// at is where clients of this listener reach a replica.
func (l *openListener) at(id epoch.ReplicaID) (kafka.Endpoint, bool) {
	e, ok := (*l.advertised.Load())[id]
	return e, ok
}

// set opens, closes and changes listeners until they are as wanted. One that stays where it
// is keeps its connections, whatever it advertises.
func (o *outside) set(ctx context.Context, wanted []Listener) {
	kept := map[string]*openListener{}
	for _, l := range o.listeners() {
		kept[l.name] = l
	}
	for _, l := range kept {
		if !containsListener(wanted, l) {
			delete(kept, l.name)
			l.close()
			o.log.Info("listener closed", "listener", l.name, "address", l.listen)
		}
	}
	next := make([]*openListener, 0, len(wanted))
	for _, w := range wanted {
		l := kept[w.Name]
		advertised := maps.Clone(w.Advertised)
		if l != nil {
			l.advertised.Store(&advertised)
			next = append(next, l)
			continue
		}
		l = &openListener{name: w.Name, listen: w.Listen, done: make(chan struct{})}
		l.advertised.Store(&advertised)
		running, cancel := context.WithCancel(ctx)
		l.cancel = cancel
		go o.keep(running, l)
		next = append(next, l)
	}
	o.mu.Lock()
	o.open = next
	o.mu.Unlock()
	o.tell()
}

func containsListener(wanted []Listener, l *openListener) bool {
	for _, w := range wanted {
		if w.Name == l.name && w.Listen == l.listen {
			return true
		}
	}
	return false
}

func (o *outside) listeners() []*openListener {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open
}

// stop closes them all and waits for their connections.
func (o *outside) stop() {
	open := o.listeners()
	for _, l := range open {
		l.cancel()
	}
	for _, l := range open {
		<-l.done
	}
}

func (l *openListener) close() {
	l.cancel()
	<-l.done
}

// keep serves a listener until ctx ends. One that cannot be opened, or that fails, costs its
// own clients only: it is tried again, and told of.
func (o *outside) keep(ctx context.Context, l *openListener) {
	defer close(l.done)
	for pause := minRebind; ; pause = min(2*pause, maxRebind) {
		err := o.serve(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if o.note(l, false, err) {
			o.log.Error(err, "a listener cannot be served; trying again", "listener", l.name, "address", l.listen)
			pause = minRebind
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// note records how a listener is, and reports whether that is new.
func (o *outside) note(l *openListener, bound bool, err error) bool {
	o.mu.Lock()
	news := l.bound != bound || (l.err == nil) != (err == nil)
	l.bound, l.err = bound, err
	o.mu.Unlock()
	o.tell()
	return news
}

func (o *outside) tell() {
	deaf := false
	for _, s := range o.status() {
		deaf = deaf || s.Error != ""
	}
	o.changed(deaf)
}

// status tells of every listener that should be open.
func (o *outside) status() []ListenerStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []ListenerStatus
	for _, l := range o.open {
		s := ListenerStatus{Name: l.name, Listen: l.listen, Open: l.bound}
		if l.err != nil {
			s.Error = l.err.Error()
		}
		all = append(all, s)
	}
	return all
}

// newOutside makes those of a replica.
func (r *running) newOutside() *outside {
	o := &outside{log: r.cfg.Log}
	o.changed = func(deaf bool) { r.mailbox.post(func(n *node.Node) { n.NoteDeaf(deaf) }) }
	o.serve = func(ctx context.Context, l *openListener) error {
		serve, err := listenKafka(l.listen, &kafka.Server{Partition: r.replica, Listener: kafka.External, Advertised: l.at, Budget: r.budget,
			Log: r.cfg.Log.WithName("kafka").WithValues("name", l.name), Metrics: r.kafkaMetrics})
		if err != nil {
			return err
		}
		o.note(l, true, nil)
		o.log.Info("listener open", "listener", l.name, "address", l.listen)
		return serve(ctx)
	}
	return o
}
