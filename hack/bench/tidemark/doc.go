// Package tidemark runs three replicas of a partition on this machine, without
// Kubernetes: the record is in a file that they share, and they elect each other by it.
package tidemark
