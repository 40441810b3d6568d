// Package sim simulates a cluster: one process, one seed, virtual time. The replicas in
// it are the ones that ship: package node with the replication core, the log and the
// volume under it, and the rules of package epoch. What is simulated is everything
// around them:
//
//   - the network: packets come late, twice, out of order or never, links are cut in one
//     direction or both, connections are reset, bytes are damaged (network.go);
//   - disks: a power cut leaves an arbitrary part of what was not synced, operations fail
//     once or for ever, a failed sync drops what it was to write, volumes run full, are
//     emptied, or put back to an earlier image, and processes end in the middle of an
//     operation (host.go, and package vfs); what was synced rots, or is put back under a
//     witness that knows better (damage.go);
//   - packets that arrive when whoever sent them has lost its volume, strangers, and a
//     process that lives on beside its replacement (late.go);
//   - the API server: reads and writes take effect at some moment or never, answers are
//     lost, watches lag and begin again in the past, it is away, and a backup puts the
//     record back to an older state (store.go, restore.go);
//   - operators that decide by what is old or wrong (operator.go), pods that are
//     replaced, two processes of one replica, clocks that run at their own speed and jump
//     (process_moves.go);
//   - producers, idempotent and plain, with all kinds of acks, and consumers (client.go).
//
// A run is drawn from its seed: its shape ([Draw]), and its steps, each a move with a
// seed of its own ([Step]). What a step does follows from these and the state before it.
// So a run can be repeated to the letter, and steps can be left out: a run that breaks an
// invariant is shrunk to the few steps that it takes ([Shrink]), told as a table of the
// replicas ([Explain]), and kept as a script ([Script]; testdata/regressions).
//
// An oracle judges every step (oracle.go and its fellows), by the
// invariants I1 to I14 of the protocol notes, the rules of DESIGN.md, and Jepsen's classes
// of what a client must not see. It reads the logs themselves, not what the replicas say.
// At the end all faults are ended, and the partition has to work: everybody in the ISR,
// logs equal, every acknowledged record there once, one more taken (heal.go).
//
// What nobody can promise is left out, and said where: a volume put back to an image of
// the present session under no witness (noticeable), damage that shows in nothing
// (damage.go), what is done on a record that was put back (line), or lost with its
// bearers as well as that record (lostWithBearers), what an unclean election loses
// (forgive).
//
// Start reading at world.go: the moves are all that can happen.
package sim
