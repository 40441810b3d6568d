package kafka

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/standalone"
)

// Variables of the environment: where the jars are, and what makes this program a replica
// instead of a test.
const (
	jarsVariable    = "TIDEMARK_KAFKA"
	replicaVariable = "TIDEMARK_KAFKA_TEST_REPLICA" // listen address and data directory
)

func TestMain(m *testing.M) {
	if what := os.Getenv(replicaVariable); what != "" {
		if err := runReplica(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runReplica is `replica standalone` in this program: a process that can be killed.
func runReplica(what string) error {
	listen, dir, _ := strings.Cut(what, " ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, closeStore, err := standalone.Config(standalone.Options{DataDir: dir, Topic: topic, Listen: listen, FlushNever: true}, logr.Discard())
	if err != nil {
		return err
	}
	defer closeStore()
	// Several segments without gigabytes.
	cfg.Settings.SegmentBytes = 16 << 10
	return replica.Run(ctx, cfg)
}

const topic = "orders"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needKafka skips the test where there are no jars.
func needKafka(t *testing.T) {
	t.Helper()
	switch jars := os.Getenv(jarsVariable); {
	case jars == "":
		t.Skip("make kafka runs this, with Apache Kafka's own programs")
	default:
		if st, err := os.Stat(jars); err != nil || !st.IsDir() {
			t.Skip(jars)
		}
	}
}

// script is hack/kafka.sh with arguments, in a process group of its own.
func script(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs("../../hack/kafka.sh")
	must(t, err)
	c := exec.Command(path, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// process is a program that runs until it is told to end.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
}

func start(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, out: &tail{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	must(t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end signals the process and waits for it.
func (p *process) end(s syscall.Signal) {
	p.t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	must(p.t, p.cmd.Process.Signal(s))
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.t.Fatalf("%s did not end with %s:\n%s", p.name, s, p.out)
	}
}

// awaitListening waits until the process takes connections.
func (p *process) awaitListening(address string) {
	p.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("%s has ended:\n%s", p.name, p.out)
		case <-deadline:
			p.t.Fatalf("%s does not listen on %s:\n%s", p.name, address, p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tail keeps what a process printed last.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 64 << 10

// Write implements io.Writer.
func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	w.b = w.b[max(0, len(w.b)-tailBytes):]
	return len(p), nil
}

// String is what was printed.
func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}

// given holds the ports that were given out: the system gives one again.
var given sync.Map

func freePort(t *testing.T) string {
	t.Helper()
	for {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		_, port, err := net.SplitHostPort(ln.Addr().String())
		must(t, err)
		must(t, ln.Close())
		if _, used := given.LoadOrStore(port, true); !used {
			return port
		}
	}
}

// replicaOn starts a standalone replica as a process of its own.
func replicaOn(t *testing.T, dir string) (*process, string) {
	t.Helper()
	address := "127.0.0.1:" + freePort(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), replicaVariable+"="+address+" "+dir)
	p := start(t, "replica", cmd)
	p.awaitListening(address)
	return p, address
}

// copyDir copies a directory as it is, also one in use.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.CopyFS(to, os.DirFS(from)))
}

func linesOf(s string) []string {
	var out []string
	for sc := bufio.NewScanner(strings.NewReader(s)); sc.Scan(); {
		out = append(out, sc.Text())
	}
	return out
}
