package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Direction is that of the packets, as the host sees them.
type Direction int8

const (
	// Both directions are cut.
	Both Direction = iota
	// Inbound packets do not reach the host.
	Inbound
	// Outbound packets do not leave it.
	Outbound
)

func (d Direction) String() string { return [...]string{"both ways", "inbound", "outbound"}[d] }

// Cut says which packets are dropped. Fields that are zero restrict nothing: the zero Cut drops everything but what
// the host sends to itself.
type Cut struct {
	// Peers are the addresses of the other side.
	Peers []string
	// Port is the TCP port of the conversations, whichever side listens on it.
	Port int
	// Direction of the packets.
	Direction Direction
	// Percent of the packets that are lost, at random; 0 is all of them.
	Percent int
}

// Cut drops packets until heal is called. Cuts may overlap.
func (l *Link) Cut(c Cut) (heal func() error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	id := l.last
	l.cuts[id] = c
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cuts, id)
		return l.enforce()
	}, l.enforce()
}

// enforce replaces all rules of the host in one transaction.
func (l *Link) enforce() error {
	var rules strings.Builder
	// Adding before deleting makes the deletion succeed when there is no table yet.
	rules.WriteString("add table inet cuts\ndelete table inet cuts\n")
	rules.WriteString("table inet cuts {\n")
	for _, side := range []struct {
		name    string
		against Direction
		iface   string
		peer    string
	}{
		{"input", Outbound, "iif", "saddr"},
		{"output", Inbound, "oif", "daddr"},
	} {
		fmt.Fprintf(&rules, "chain %s { type filter hook %s priority 0; policy accept;\n%s lo accept\n", side.name, side.name, side.iface)
		for _, id := range slices.Sorted(maps.Keys(l.cuts)) {
			if c := l.cuts[id]; c.Direction != side.against {
				rules.WriteString(c.rules(side.peer))
			}
		}
		rules.WriteString("}\n")
	}
	rules.WriteString("}\n")
	return run(rules.String(), "ip", "netns", "exec", l.namespace, "nft", "-f", "-")
}

func (c Cut) rules(peer string) string {
	var match string
	if len(c.Peers) > 0 {
		match = fmt.Sprintf("ip %s { %s } ", peer, strings.Join(c.Peers, ", "))
	}
	action := "drop\n"
	if c.Percent > 0 {
		action = fmt.Sprintf("numgen random mod 100 < %d drop\n", c.Percent)
	}
	if c.Port == 0 {
		return match + action
	}
	return fmt.Sprintf("%stcp dport %d %s%stcp sport %d %s", match, c.Port, action, match, c.Port, action)
}
