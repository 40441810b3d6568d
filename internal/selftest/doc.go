// Package selftest is what `helm test` runs: it makes a partition, produces to it and
// consumes from it as any Kafka client would, compares, and removes it. It shows that
// the operator works, that volumes are provided, that pods may run and that names and
// network are as clients need them.
//
// It touches nothing but the one partition that it has made, which it knows by a label,
// and whose volumes go with it.
package selftest
