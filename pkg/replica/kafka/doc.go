// Package kafka speaks Kafka's wire protocol for one replica of one
// topic-partition, to clients that nobody here wrote and to the other replicas.
//
// It owns connections, framing, versions, error codes and the order of answers. It
// knows nothing of logs, leadership or replication: all that is behind [Partition],
// which the replica implements.
//
// A [Server] serves one listener. The client listener takes producers, consumers
// and admin tools. The replication listener takes the fetches of followers, and is
// the only one whose fetches can move the high watermark (DESIGN.md rule 9).
// [Client] is the other end of it: what a follower fetches with.
//
// # Invariants
//
//   - Answers leave in the order of the requests. Batches of one connection reach
//     the partition in that order too, without waiting for each other; every other
//     request runs when all before it are answered.
//   - What a client sends can cost its own connection and nothing else: sizes,
//     requests outstanding, connections and bytes in flight are bounded by [Limits],
//     and a full bound makes the server read no further.
//   - No leader is told to clients with an epoch lower than one told before, nor
//     another leader within an epoch.
//   - The bytes of a request belong to one side at a time. A produced batch is the
//     partition's until it reports the result; all else is the server's.
//
// # Closing a connection
//
// A malformed request, an API key or a version that is not served, and a failed
// produce with acks=0 close the connection they came on. The first three leave one
// V(1) line in the log. A version of ApiVersions that is not served is answered.
//
// # Where to start
//
// partition.go is the contract with the replica; conn.go is how a connection runs;
// apis.go lists what is served. Each API has its own file, named after its number,
// which begins with what it does in which version. errors.go is the one table
// between errors and Kafka's codes.
//
// To add an API: write NN_name.go with a variable like apiMetadata and its handler,
// and list it in apis.go.
package kafka
