// Package alerts tests the chart's alerts and dashboard: every expression is parsed by
// Prometheus's own parser, every alert is shown series at which it fires and others at
// which it does not, by Prometheus's own engine, and every metric that is named is one
// of docs/metrics.md, which other tests hold against the code.
//
// It is a module of its own, since Prometheus is a large dependency of nothing else.
package alerts
