package kafka

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what the servers of one process do. Every label has a closed set
// of values: listener (clients, replication, external), api (Kafka's name of the key), code
// (Kafka's name of the error).
type Metrics struct {
	requests    *prometheus.CounterVec
	errors      *prometheus.CounterVec
	received    *prometheus.CounterVec
	sent        *prometheus.CounterVec
	connections *prometheus.GaugeVec
	closed      *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them with r; r may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		if r != nil {
			r.MustRegister(c)
		}
		return c
	}
	m := &Metrics{
		requests: counter("tidemark_kafka_requests_total", "Requests received, by API key.", "listener", "api"),
		errors:   counter("tidemark_kafka_request_errors_total", "Error codes answered, by API key and code.", "listener", "api", "code"),
		received: counter("tidemark_kafka_received_bytes_total", "Bytes of requests received.", "listener"),
		sent:     counter("tidemark_kafka_sent_bytes_total", "Bytes of responses sent.", "listener"),
		closed:   counter("tidemark_kafka_connections_refused_total", "Connections closed for a malformed request or at the connection limit.", "listener"),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_kafka_connections", Help: "Open connections."}, []string{"listener"}),
	}
	if r != nil {
		r.MustRegister(m.connections)
	}
	return m
}

// listenerMetrics are the metrics of one server with the listener's label set, so
// that the hot path looks nothing up.
type listenerMetrics struct {
	*Metrics
	listener    string
	requests    map[int16]prometheus.Counter
	received    prometheus.Counter
	sent        prometheus.Counter
	connections prometheus.Gauge
	closed      prometheus.Counter
}

func (m *Metrics) of(l Listener) *listenerMetrics {
	if m == nil {
		m = NewMetrics(nil)
	}
	name := l.String()
	lm := &listenerMetrics{
		Metrics: m, listener: name, requests: map[int16]prometheus.Counter{},
		received:    m.received.WithLabelValues(name),
		sent:        m.sent.WithLabelValues(name),
		connections: m.connections.WithLabelValues(name),
		closed:      m.closed.WithLabelValues(name),
	}
	for _, a := range apis {
		if a.servedOn(l) {
			lm.requests[a.key] = m.requests.WithLabelValues(name, a.name)
		}
	}
	return lm
}

func (m *listenerMetrics) error(api string, code Code) {
	m.errors.WithLabelValues(m.listener, api, code.String()).Inc()
}
