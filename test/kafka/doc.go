// Package kafka holds Tidemark's log directory against Apache Kafka itself, of the version
// that hack/kafka.sh brings: Kafka's own DumpLogSegments reads what Tidemark writes, Tidemark
// serves what a broker wrote, and a broker serves what Tidemark wrote.
//
// The tests run where TIDEMARK_KAFKA names the directory of Kafka's jars, as `make kafka`
// and `make test` set it; where it holds something else, that is why the jars could not be
// had, and the tests are skipped with it.
//
// Start reading at dump_test.go, then moves_test.go.
package kafka
