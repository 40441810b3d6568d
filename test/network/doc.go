// Package network puts processes into network namespaces of their own on one
// machine, joined by a bridge, and cuts them off: from everybody or from some, in
// both directions or in one, for ever or for a share of the packets.
//
// A cut drops packets, as a broken network does: nobody is told, connections that
// exist hang, and new ones time out. [Link.Down] takes the interface away.
// [Link.Slow] squeezes what leaves through a narrow pipe with a long queue, which
// makes it late; it needs no netem, which not every kernel has.
//
// [Enter] first moves the calling test binary into namespaces of its own (network,
// mount and process), so that nothing of the machine's network is touched, two runs
// do not see each other, and everything, processes included, is gone when the binary
// ends, however it ends. That needs root; [Missing] tells what a machine lacks.
//
// Programs used: ip and tc (iproute2) and nft (nftables).
package network
