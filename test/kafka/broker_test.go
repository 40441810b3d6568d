package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// indexInterval is small, so that small logs have many index entries.
const indexInterval = 500

// cluster is one broker of Kafka with its directory, started again and again.
type cluster struct {
	t       *testing.T
	dir     string
	ports   string
	address string
	process *process
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	client := freePort(t)
	return &cluster{t: t, dir: t.TempDir(), ports: client + ":" + freePort(t), address: "127.0.0.1:" + client}
}

func (c *cluster) start() {
	c.t.Helper()
	cmd := script(c.t, "broker", c.dir, "1", c.ports, fmt.Sprint("log.index.interval.bytes=", indexInterval), "log.cleaner.backoff.ms=200")
	cmd.Env = append(os.Environ(), "KAFKA_JVM=-XX:TieredStopAtLevel=1 -Dorg.apache.logging.log4j.level=WARN")
	c.process = start(c.t, "the broker", cmd)
	c.process.awaitListening(c.address)
}

// complaints are the warnings of the broker that name a partition's directory.
func (c *cluster) complaints(partition string) []string {
	return slices.DeleteFunc(linesOf(c.process.out.String()), func(l string) bool { return !strings.Contains(l, partition) })
}

func (c *cluster) stop() { c.process.end(syscall.SIGTERM) }
func (c *cluster) kill() { c.process.end(syscall.SIGKILL) }

// data is the broker's data directory.
func (c *cluster) data() string { return filepath.Join(c.dir, "1") }

// snapshot copies the directory of a topic with what stands beside it in the data
// directory, as Inspect wants it.
func (c *cluster) snapshot(topic string) string {
	c.t.Helper()
	to := c.t.TempDir()
	copyDir(c.t, filepath.Join(c.data(), topic+"-0"), filepath.Join(to, topic+"-0"))
	for _, name := range append([]string{"meta.properties", ".kafka_cleanshutdown"}, checkpoints...) {
		b, err := os.ReadFile(filepath.Join(c.data(), name))
		if os.IsNotExist(err) {
			continue
		}
		must(c.t, err)
		must(c.t, os.WriteFile(filepath.Join(to, name), b, 0o644))
	}
	return to
}

// checkpoints are the files of a data directory that have a line for each log.
var checkpoints = []string{"replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"}

// replace puts the log of another data directory in the place of a topic's, under the topic's
// id, and its lines into the checkpoints. The broker is stopped.
func (c *cluster) replace(name string, id epoch.UUID, with string) {
	c.t.Helper()
	place := filepath.Join(c.data(), name+"-0")
	must(c.t, os.RemoveAll(place))
	copyDir(c.t, filepath.Join(with, topic+"-0"), place)
	metadata := filepath.Join(place, "partition.metadata")
	b, err := os.ReadFile(metadata)
	must(c.t, err)
	must(c.t, os.WriteFile(metadata, regexp.MustCompile(`topic_id: \S+`).ReplaceAll(b, []byte("topic_id: "+id.String())), 0o644))
	for _, file := range checkpoints {
		lines := slices.DeleteFunc(entries(c.t, filepath.Join(c.data(), file)), func(l string) bool { return strings.HasPrefix(l, name+" 0 ") })
		for _, l := range entries(c.t, filepath.Join(with, file)) {
			if offset, ok := strings.CutPrefix(l, topic+" 0 "); ok {
				lines = append(lines, name+" 0 "+offset)
			}
		}
		must(c.t, os.WriteFile(filepath.Join(c.data(), file), fmt.Appendf(nil, "0\n%d\n%s\n", len(lines), strings.Join(lines, "\n")), 0o644))
	}
}

// entries are the lines of a checkpoint behind version and number.
func entries(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	lines := linesOf(string(b))
	return lines[min(2, len(lines)):]
}
