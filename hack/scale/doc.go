// Command scale measures the operator with many partitions: the manager's own binary, as a
// process of its own, against a real kube-apiserver and etcd (those of envtest). Kubelets and
// replicas are simulated in this process: pods run as soon as they are made, replicas register in
// the record by the rules of package epoch, and every leader renews its lease.
//
//	make bench-scale ARGS='-sizes 100,1000'
//
// API server, etcd, operator and simulation share the machine. What is the operator's own is
// counted apart: memory and processor time from /proc, requests from its metrics.
package main
