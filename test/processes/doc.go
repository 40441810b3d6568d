// Package processes runs the shipping binaries, the operator and its replicas, as
// real processes against a real kube-apiserver, on one machine and without nodes: the
// tests play scheduler and kubelet. They bind pods, start the command that the pod
// names with its arguments and environment, report its container's state, start it
// again when it ends, and end it when the pod is deleted.
//
// Where the machine can do it (root, iproute2, nftables), all of this happens in
// namespaces of the test's own, each process on a network host of its own, so that
// networks can be cut and nothing is left behind; see package network. Elsewhere pods
// have loopback addresses, and TestNemesis is skipped.
//
// TestNemesis is the place where everything may go wrong at once. Package nemesis draws
// the faults; nemesis_inject carries them out, nemesis_lose destroys what volumes and
// witnesses hold, as far as the partition must stand it, nemesis_load is the clients,
// and nemesis_finish heals, judges the histories (package history), compares the
// replicas' logs byte for byte, and looks for panics and data races in what the
// processes printed. `make nemesis` runs it for an hour; one round of a minute is part
// of `make test`.
//
// Nothing here is judged by a clock: a condition is awaited, and that it never comes
// true is the failure. Durations of faults are inputs.
//
// It holds tests only. They need the API server's binaries (KUBEBUILDER_ASSETS), which
// `make test` builds.
package processes
