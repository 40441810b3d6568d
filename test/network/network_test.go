package network_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/test/network"
)

// echoAt makes the binary a server that echoes lines, at that address.
const echoAt = "TIDEMARK_TEST_ECHO"

func TestMain(m *testing.M) {
	if address := os.Getenv(echoAt); address != "" {
		echo(address)
	}
	if err := network.Missing(); err != nil {
		fmt.Println("tests of namespaces are skipped:", err)
		os.Exit(m.Run())
	}
	code, entered, err := network.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if entered {
		code = m.Run()
	}
	os.Exit(code)
}

func echo(address string) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		c, err := ln.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() { _, _ = io.Copy(c, c) }()
	}
}

// host is one on the network that echoes at ports 1000 and 2000.
type host struct {
	*network.Link
	t *testing.T
}

func newHost(t *testing.T, n *network.Network) *host {
	t.Helper()
	l, err := n.Join()
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"1000", "2000"} {
		cmd := l.Command("/proc/self/exe")
		cmd.Args[len(cmd.Args)-1] = os.Args[0]
		cmd.Env = append(os.Environ(), echoAt+"="+l.Address+":"+port)
		start(t, cmd)
	}
	return &host{l, t}
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
		t.Fatalf("the server said %q, %v", line, err)
	}
}

// patience is for what must happen, whatever else the machine is doing; soon is for what must not.
const (
	patience = 30 * time.Second
	soon     = 300 * time.Millisecond
)

// dial connects from an address of the caller's to a port of the host's.
func (h *host) dial(from, port string, within time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: within, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.Dial("tcp", h.Address+":"+port)
}

// talks reports whether a line comes back.
func talks(c net.Conn, within time.Duration) bool {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return false
	}
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return false
	}
	_, err := io.ReadFull(c, make([]byte, len("hello\n")))
	return err == nil
}

// answers reports that a server of the host's answers. If it is not expected to, that it has not done so soon is enough.
func (h *host) answers(from, port string, expected bool) bool {
	within := soon
	if expected {
		within = patience
	}
	for end := time.Now().Add(within); ; {
		c, err := h.dial(from, port, within)
		if err == nil {
			answer := talks(c, within)
			_ = c.Close()
			if answer {
				return true
			}
		}
		if time.Now().After(end) {
			return false
		}
	}
}

const second = "198.18.0.2"

func newNetwork(t *testing.T) *network.Network {
	t.Helper()
	if !network.Inside() {
		t.Skip(network.Missing())
	}
	n, err := network.New(second)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNetwork is one test, since there is one network in a namespace.
func TestNetwork(t *testing.T) {
	n := newNetwork(t)
	h := newHost(t, n)
	h2 := newHost(t, n)
	everything := [][2]string{{network.Home, "1000"}, {network.Home, "2000"}, {second, "1000"}, {second, "2000"}}
	tests := []struct {
		name string
		cut  network.Cut
		open [][2]string // who may still talk to which port
	}{
		{name: "nothing of anybody's", cut: network.Cut{}},
		{name: "nothing comes in", cut: network.Cut{Direction: network.Inbound}},
		{name: "nothing gets out", cut: network.Cut{Direction: network.Outbound}},
		{name: "one peer", cut: network.Cut{Peers: []string{second}}, open: [][2]string{{network.Home, "1000"}, {network.Home, "2000"}}},
		{name: "one peer, inbound", cut: network.Cut{Peers: []string{second}, Direction: network.Inbound}, open: [][2]string{{network.Home, "1000"}, {network.Home, "2000"}}},
		{name: "one port", cut: network.Cut{Port: 1000}, open: [][2]string{{network.Home, "2000"}, {second, "2000"}}},
		{name: "one peer at one port, outbound", cut: network.Cut{Peers: []string{second}, Port: 1000, Direction: network.Outbound},
			open: [][2]string{{network.Home, "1000"}, {network.Home, "2000"}, {second, "2000"}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			heal, err := h.Cut(tc.cut)
			if err != nil {
				t.Fatal(err)
			}
			for _, way := range everything {
				want := false
				for _, o := range tc.open {
					want = want || o == way
				}
				if got := h.answers(way[0], way[1], want); got != want {
					t.Errorf("from %s to port %s: answers %v, want %v", way[0], way[1], got, want)
				}
				if !h2.answers(way[0], way[1], true) {
					t.Errorf("another host does not answer %s at port %s", way[0], way[1])
				}
			}
			if err := heal(); err != nil {
				t.Fatal(err)
			}
			for _, way := range everything {
				if !h.answers(way[0], way[1], true) {
					t.Errorf("healed: no answer from port %s to %s", way[1], way[0])
				}
			}
		})
	}
	t.Run("an open connection hangs and goes on", func(t *testing.T) { hangs(t, h) })
	t.Run("an interface goes down and up", func(t *testing.T) {
		up, err := h.Down()
		if err != nil || h.answers(network.Home, "1000", false) {
			t.Fatalf("down: %v, or it still answers", err)
		}
		if err := up(); err != nil || !h.answers(network.Home, "1000", true) {
			t.Fatalf("up: %v, or no answer", err)
		}
	})
	t.Run("hosts come and go", func(t *testing.T) { neighbours(t, n, h) })
	t.Run("slow and lossy, but open", func(t *testing.T) { impaired(t, h) })
}

func hangs(t *testing.T, h *host) {
	c, err := h.dial(network.Home, "1000", patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	heal, err := h.Cut(network.Cut{})
	if err != nil {
		t.Fatal(err)
	}
	if talks(c, soon) {
		t.Error("a cut connection answers")
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	// What was lost is sent again.
	if !talks(c, patience) {
		t.Error("the healed connection does not answer")
	}
}

// neighbours joins and removes hosts, which must not change by which address the others know the caller. A bridge left to
// itself would take that of any port that happens to be lower than the ones before.
func neighbours(t *testing.T, n *network.Network, h *host) {
	address := func() string {
		bridge, err := net.InterfaceByName("hosts")
		if err != nil {
			t.Fatal(err)
		}
		return bridge.HardwareAddr.String()
	}
	before := address()
	for i := range 20 {
		l, err := n.Join()
		if err != nil {
			t.Fatal(err)
		}
		if got := address(); got != before {
			t.Errorf("the caller's address changed from %s to %s with host %d", before, got, i+1)
		}
		if err := l.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if !h.answers(network.Home, "1000", true) {
		t.Error("no answer after 20 hosts came and went")
	}
}

func impaired(t *testing.T, h *host) {
	normal, err := h.Slow(64)
	if err != nil {
		t.Fatal(err)
	}
	if !h.answers(network.Home, "1000", true) {
		t.Error("a slow host does not answer")
	}
	if err := normal(); err != nil {
		t.Fatal(err)
	}
	heal, err := h.Cut(network.Cut{Percent: 10})
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&net.Dialer{Timeout: patience}).Dial("tcp", h.Address+":1000")
	if err != nil {
		t.Fatalf("with every tenth packet lost: %v", err)
	}
	defer c.Close()
	if !talks(c, patience) {
		t.Error("with every tenth packet lost there is no answer")
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
}
