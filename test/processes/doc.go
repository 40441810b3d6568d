// Package processes runs the shipping binaries, the operator and its replicas, as
// real processes against a real kube-apiserver, on one machine and without nodes: the
// tests play scheduler and kubelet. They bind pods, start the command that the pod
// names with its arguments and environment, report its container's state, start it
// again when it ends, and end it when the pod is deleted.
//
// It holds tests only. They need the API server's binaries (KUBEBUILDER_ASSETS), which
// `make test` builds.
package processes
