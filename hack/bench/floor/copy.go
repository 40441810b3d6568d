package floor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/machine"
)

// chunk is what is read and written at once.
const chunk = 256 << 10

// Copied is what one copy took.
type Copied struct {
	Bytes   uint64
	Elapsed time.Duration
	// Leader and Followers are processor time of the processes that wrote.
	Leader, Followers time.Duration
}

// Copy moves bytes from this process to a leader, which writes them and hands them to
// two followers, which write them too: three processes and three files, no protocol, no
// checksums, no syncs. It is over when all three have written everything.
func Copy(ctx context.Context, dir string, bytes uint64) (Copied, error) {
	var processes []*machine.Process
	defer func() {
		for _, p := range processes {
			p.Kill()
		}
	}()
	start := func(name string, next ...string) (string, error) {
		p, address, err := startReceiver(ctx, filepath.Join(dir, name), next)
		if p != nil {
			processes = append(processes, p)
		}
		return address, err
	}
	a, err := start("follower-1")
	if err != nil {
		return Copied{}, err
	}
	b, err := start("follower-2")
	if err != nil {
		return Copied{}, err
	}
	leader, err := start("leader", a, b)
	if err != nil {
		return Copied{}, err
	}
	var before [3]time.Duration
	for i, p := range processes {
		if before[i], err = machine.CPU(p.PID()); err != nil {
			return Copied{}, err
		}
	}
	elapsed, err := send(leader, bytes)
	if err != nil {
		return Copied{}, err
	}
	var used [3]time.Duration
	for i, p := range processes {
		after, err := machine.CPU(p.PID())
		if err != nil {
			return Copied{}, err
		}
		used[i] = after - before[i]
	}
	return Copied{Bytes: bytes, Elapsed: elapsed, Leader: used[2], Followers: used[0] + used[1]}, nil
}

func startReceiver(ctx context.Context, file string, next []string) (*machine.Process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	output := file + ".address"
	_ = os.Remove(output) // of an earlier copy
	p, err := machine.Start(output, nil, self, append([]string{ReceiverCommand, file}, next...)...)
	if err != nil {
		return nil, "", err
	}
	for {
		if line, _, ok := strings.Cut(p.Output(), "\n"); ok {
			return p, line, nil
		}
		select {
		case <-ctx.Done():
			return p, "", ctx.Err()
		case <-p.Ended():
			return p, "", fmt.Errorf("a receiver ended: %s", p.Output())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// send writes bytes to a receiver and waits until it says that it is done.
func send(address string, bytes uint64) (time.Duration, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	buf := make([]byte, chunk)
	begun := time.Now()
	for left := bytes; left > 0; {
		n, err := c.Write(buf[:min(left, chunk)])
		if err != nil {
			return 0, err
		}
		left -= uint64(n)
	}
	err = finish(c)
	return time.Since(begun), err
}

// finish tells a receiver that this was all, and waits for its word.
func finish(c net.Conn) error {
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// ReceiverCommand is the first argument that makes this program a receiver.
const ReceiverCommand = "floor-receiver"

// Receive runs a receiver: it prints its address, and then writes what comes to a file
// and to the next receivers, until it is killed.
func Receive(file string, next []string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	to := make([]net.Conn, len(next))
	for i, address := range next {
		if to[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(w, ln.Addr())
	if err := w.Flush(); err != nil {
		return err
	}
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	if err := receive(c, out, to); err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err = ln.Accept() // it stays until it is killed, for its processor time to be read
	return err
}

func receive(c net.Conn, out io.Writer, next []net.Conn) error {
	buf := make([]byte, chunk)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
			for _, to := range next {
				if _, err := to.Write(buf[:n]); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, to := range next {
		if err := finish(to); err != nil {
			return err
		}
	}
	return nil
}
