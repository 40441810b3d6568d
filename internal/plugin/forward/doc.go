// Package forward makes connections to the ports of pods through the API server, as kubectl
// port-forward does, but without a port on this machine that others could use as well: each
// connection is a pair of streams.
//
// What a connection carries arrives at the pod's own loopback address. Network policies do
// not concern it, and who may make it is the API server's decision (create and get on
// pods/portforward).
package forward
