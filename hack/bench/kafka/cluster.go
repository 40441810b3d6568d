// Package kafka runs three brokers of Apache Kafka on this machine, by hack/kafka.sh.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/hack/bench/franz"
	"github.com/tidemark-io/tidemark/hack/bench/load"
	"github.com/tidemark-io/tidemark/hack/bench/machine"
	"github.com/tidemark-io/tidemark/hack/bench/system"
)

const (
	brokers    = 3
	minISR     = "2"
	startLimit = 2 * time.Minute
	heap       = "1g"
	// jvm is what Kafka's own start script gives a broker.
	jvm = "-server -Xms1g -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true"
	// deleteDelay is a setting of the brokers: what a case has written is to be gone
	// when the next one begins.
	deleteDelay = "log.segment.delete.delay.ms=100"
)

// ErrUnreachable says that Kafka could not be had.
var ErrUnreachable = errors.New("there is no Apache Kafka here")

// Options say where things are.
type Options struct {
	// Script is hack/kafka.sh.
	Script string
	Dir    string
	// Port is the first of the ports, two per broker.
	Port   int
	Client franz.Options
}

// System is a cluster. Each log is a topic.
type System struct {
	Options
	version   string
	processes [brokers]*machine.Process
	topics    int
}

var _ system.System = (*System)(nil)

// Start starts the brokers.
func Start(ctx context.Context, o Options) (*System, error) {
	s := &System{Options: o}
	var err error
	if s.Dir, err = os.MkdirTemp(o.Dir, "kafka-"); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, o.Script, "jars").Output()
	if err != nil {
		var e *exec.ExitError
		if errors.As(err, &e) && e.ExitCode() == 3 {
			return nil, fmt.Errorf("%w: %s", ErrUnreachable, e.Stderr)
		}
		return nil, fmt.Errorf("bring the jars of Kafka: %w", err)
	}
	jars, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "kafka-clients-*.jar"))
	if err != nil || len(jars) == 0 {
		return nil, fmt.Errorf("find the jars of Kafka: %w", errors.Join(err, errors.New(string(out))))
	}
	s.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka-clients-"), ".jar")
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for i := range brokers {
		if err := s.start(i); err != nil {
			s.Close()
			return nil, err
		}
	}
	for i := range brokers {
		if err := s.awaitReady(ctx, i); err != nil {
			err = fmt.Errorf("%w\n%s", err, s.processes[i].Output())
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *System) ports() string {
	var all []string
	for i := range brokers {
		all = append(all, fmt.Sprintf("%d:%d", s.Port+2*i, s.Port+2*i+1))
	}
	return strings.Join(all, " ")
}

func (s *System) address(i int) string { return "127.0.0.1:" + strconv.Itoa(s.Port+2*i) }

// start runs the script, which becomes the broker.
func (s *System) start(i int) (err error) {
	id := strconv.Itoa(i + 1)
	s.processes[i], err = machine.Start(filepath.Join(s.Dir, "broker-"+id+".log"), []string{"KAFKA_HEAP=" + heap, "KAFKA_JVM=" + jvm},
		s.Script, "broker", s.Dir, id, s.ports(), "min.insync.replicas="+minISR, "auto.create.topics.enable=false", deleteDelay)
	return err
}

// awaitReady waits until a broker answers and has heard of all others.
func (s *System) awaitReady(ctx context.Context, i int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.address(i)))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		got, err := kmsg.NewPtrMetadataRequest().RequestWith(one, client)
		cancel()
		if err == nil && len(got.Brokers) == brokers {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for broker %d: %w", i+1, errors.Join(err, ctx.Err()))
		case <-s.processes[i].Ended():
			return fmt.Errorf("broker %d has ended", i+1)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Info implements system.System.
func (s *System) Info() system.Info {
	return system.Info{Name: "Apache Kafka", Version: s.version, Settings: map[string]string{
		"replication factor": strconv.Itoa(brokers), "min.insync.replicas": minISR, "mode": "KRaft, each broker is a controller, too",
		"EveryBatch": "flush.messages=1", "JVM": "Java of this machine, -Xmx" + heap + " " + jvm, "everything else": "defaults, but " + deleteDelay}}
}

// Supports implements system.System.
func (*System) Supports(system.Flush, system.Acks) bool { return true }

// Close ends the brokers.
func (s *System) Close() {
	for _, p := range s.processes {
		if p != nil {
			p.Kill()
		}
	}
	_ = os.RemoveAll(s.Dir)
}

// Open makes a topic.
func (s *System) Open(ctx context.Context, flush system.Flush) (system.Log, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s.topics++
	t := &topic{s, franz.Cluster{Topic: fmt.Sprint("bench-", s.topics), Options: s.Client}}
	for i := range brokers {
		t.cluster.Seeds = append(t.cluster.Seeds, s.address(i))
	}
	if err := t.create(ctx, flush); err != nil {
		return nil, fmt.Errorf("create the topic: %w", err)
	}
	_, err := t.cluster.AwaitInSync(ctx, brokers)
	return t, err
}

// topic is one log.
type topic struct {
	*System
	cluster franz.Cluster
}

var _ system.Restarter = (*topic)(nil)

func (t *topic) create(ctx context.Context, flush system.Flush) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.cluster.Seeds...))
	if err != nil {
		return err
	}
	defer client.Close()
	ask := kmsg.NewPtrCreateTopicsRequest()
	n := kmsg.NewCreateTopicsRequestTopic()
	n.Topic, n.NumPartitions, n.ReplicationFactor = t.cluster.Topic, 1, brokers
	if flush == system.FlushEveryBatch {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = "flush.messages", kmsg.StringPtr("1")
		n.Configs = append(n.Configs, c)
	}
	ask.Topics = append(ask.Topics, n)
	got, err := ask.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(got.Topics[0].ErrorCode)
}

// Servers implements system.Log.
func (t *topic) Servers() []system.Server {
	var all []system.Server
	for i, p := range t.processes {
		id := strconv.Itoa(i + 1)
		all = append(all, system.Server{Name: "broker " + id, PID: p.PID(), Dir: filepath.Join(t.Dir, id, t.cluster.Topic+"-0")})
	}
	return all
}

// Leader implements system.Log.
func (t *topic) Leader(ctx context.Context) (int, error) {
	s, err := t.cluster.State(ctx)
	return int(s.Leader) - 1, err
}

// Producer implements system.Log.
func (t *topic) Producer(acks system.Acks) (load.Producer, error) { return t.cluster.Producer(acks) }

// Consume implements system.Log.
func (t *topic) Consume(ctx context.Context, records uint64) (system.Consumed, error) {
	return t.cluster.Consume(ctx, records)
}

// Flushes implements system.Log: it is in JMX only.
func (*topic) Flushes(context.Context, int) (uint64, bool) { return 0, false }

// Restart implements system.Restarter.
func (t *topic) Restart(ctx context.Context, i int) (system.Restarted, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	t.processes[i].Kill()
	if _, err := t.cluster.Await(ctx, func(s franz.State) bool { return len(s.ISR) == brokers-1 }); err != nil {
		return system.Restarted{}, err
	}
	begun := time.Now()
	if err := t.start(i); err != nil {
		return system.Restarted{}, err
	}
	if err := t.awaitReady(ctx, i); err != nil {
		return system.Restarted{}, err
	}
	r := system.Restarted{Ready: time.Since(begun)}
	_, err := t.cluster.AwaitInSync(ctx, brokers)
	r.InSync = time.Since(begun)
	return r, err
}

// Close deletes the topic, and waits until its files are gone.
func (t *topic) Close() {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.cluster.Seeds...))
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ask := kmsg.NewPtrDeleteTopicsRequest()
	n := kmsg.NewDeleteTopicsRequestTopic()
	n.Topic = kmsg.StringPtr(t.cluster.Topic)
	ask.Topics, ask.TopicNames = append(ask.Topics, n), []string{t.cluster.Topic}
	_, _ = ask.RequestWith(ctx, client) // the whole directory goes at the end
	for ctx.Err() == nil {
		left, _ := filepath.Glob(filepath.Join(t.Dir, "*", t.cluster.Topic+"-0*"))
		if len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
