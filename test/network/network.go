package network

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// Network is a bridge with hosts on it. Its methods may be called from several goroutines at once.
type Network struct {
	mu    sync.Mutex
	next  int // last byte of the next host's address, if that is free
	taken map[int]bool
}

// The one subnet; of those set aside for tests of networks.
const (
	subnet = "198.18.0."
	bridge = "hosts"
	// Home is the address of the namespace in which the caller is.
	Home = subnet + "1"

	firstHost, lastHost = 10, 210
)

// New makes the network, in the namespaces that [Enter] made. The caller is on it with the address [Home], and with
// the further ones given, each of the form 198.18.0.x with x below 10.
func New(more ...string) (*Network, error) {
	if !Inside() {
		return nil, fmt.Errorf("make a network: only in own namespaces, see Enter")
	}
	commands := [][]string{
		{"ip", "link", "add", bridge, "type", "bridge"},
		// Without an address of its own a bridge takes one of its ports', and when that port goes, hosts talk to an
		// address that nobody has until they ask again, half a minute later.
		{"ip", "link", "set", bridge, "address", "02:00:00:00:00:01"},
		{"ip", "addr", "add", Home + "/24", "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	}
	for _, a := range more {
		commands = append(commands, []string{"ip", "addr", "add", a + "/24", "dev", bridge})
	}
	for _, c := range commands {
		if err := run("", c...); err != nil {
			return nil, err
		}
	}
	return &Network{next: firstHost, taken: map[int]bool{}}, nil
}

// Join makes a host with an address of its own. What a host has left is not used again before some 200 others were.
func (n *Network) Join() (*Link, error) {
	number, err := n.take()
	if err != nil {
		return nil, err
	}
	l := &Link{Address: fmt.Sprintf("%s%d", subnet, number), namespace: fmt.Sprintf("h%d", number), cuts: map[int]Cut{}, left: func() { n.free(number) }}
	outer := "to-" + l.namespace
	for _, c := range [][]string{
		{"ip", "netns", "add", l.namespace},
		{"ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", l.namespace},
		{"ip", "link", "set", outer, "master", bridge, "up"},
		{"ip", "-n", l.namespace, "addr", "add", l.Address + "/24", "dev", "eth0"},
		{"ip", "-n", l.namespace, "link", "set", "lo", "up"},
		{"ip", "-n", l.namespace, "link", "set", "eth0", "up"},
	} {
		if err := run("", c...); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// take finds the next number that no host has.
func (n *Network) take() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range lastHost - firstHost + 1 {
		number := n.next
		if n.next++; n.next > lastHost {
			n.next = firstHost
		}
		if !n.taken[number] {
			n.taken[number] = true
			return number, nil
		}
	}
	return 0, fmt.Errorf("join a host: all %d addresses are taken", lastHost-firstHost+1)
}

func (n *Network) free(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.taken, number)
}

// Link is a host's connection to the network.
type Link struct {
	// Address of the host.
	Address   string
	namespace string
	left      func()

	mu   sync.Mutex
	cuts map[int]Cut
	last int
}

// Command makes a command whose process runs on the host.
func (l *Link) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", l.namespace, name}, args...)...)
}

// Remove takes the host away; its processes must have ended.
func (l *Link) Remove() error {
	err := run("", "ip", "netns", "del", l.namespace)
	if err == nil {
		l.left()
	}
	return err
}

// Down takes the host off the network until up is called.
func (l *Link) Down() (up func() error, err error) {
	set := func(to string) error { return run("", "ip", "-n", l.namespace, "link", "set", "eth0", to) }
	return func() error { return set("up") }, set("down")
}

// Slow lets only so many kilobit per second leave the host until normal is called: what is sent waits in a queue of
// up to two seconds, and what does not fit into it is lost.
func (l *Link) Slow(kilobits int) (normal func() error, err error) {
	device := []string{"-n", l.namespace, "qdisc"}
	add := append(append([]string{"tc"}, device...), "replace", "dev", "eth0", "root", "tbf", "rate", fmt.Sprintf("%dkbit", kilobits), "burst", "4kb", "latency", "2s")
	return func() error {
		return run("", append(append([]string{"tc"}, device...), "del", "dev", "eth0", "root")...)
	}, run("", add...)
}

// run runs a program with text as its input.
func run(text string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
