// Package fetcher is the follower's loop: it fetches from the leader over one
// connection, one request outstanding, and hands the answers to the owner of the
// replication core. It decides nothing: what to ask, and what an answer means, is
// the core's. Every Follow starts a new loop with a new connection, and abandons the
// old one with what it has outstanding.
//
// Start reading at fetcher.go; exchange.go has the wire format.
package fetcher
