package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/hack/bench/system"
)

// plan is what a run measures.
type plan struct {
	systems, measures []string
	flushes           []system.Flush
	acks              []system.Acks
	sizes, producers  []int

	duration, warmup, linger  time.Duration
	rousing                   time.Duration
	runBytes                  uint64
	repeat                    int
	seed                      uint64
	inFlightBytes             int
	inFlightRecords           int
	fetchBytes, restartBytes  uint64
	copyBytes                 uint64
	dir, replica, nats, kafka string
	markdown, jsonLines       string
	port                      int
	pprof                     bool
}

// What can be measured.
const (
	measureFloor   = "floor"
	measureProduce = "produce"
	measureLatency = "latency"
	measureFetch   = "fetch"
	measureRestart = "restart"
	measureMemory  = "memory"
)

var (
	allSystems  = []string{"tidemark", "kafka", "nats"}
	allMeasures = []string{measureFloor, measureProduce, measureLatency, measureFetch, measureRestart, measureMemory}
)

func (p plan) wants(name string) bool { return slices.Contains(p.measures, name) }

// inFlight is how many records one of n producers has under way in a closed loop. All of
// them together have the same, however many they are.
func (p plan) inFlight(size, n int) int {
	return max(1, min(p.inFlightBytes/size, p.inFlightRecords)/n)
}

func parsePlan(f *flag.FlagSet, args []string) (plan, error) {
	var p plan
	full := f.Bool("full", false, "all systems, three seconds for every run instead of one, and five repeats")
	systems := f.String("systems", "", "comma-separated, of tidemark, kafka, nats (default tidemark; with -full all of them)")
	measures := f.String("measure", strings.Join(allMeasures, ","), "what to measure")
	flushes := f.String("flush", "Never,EveryBatch", "when data become durable")
	acks := f.String("acks", "1,all", "replicas that hold a record before it is acknowledged")
	sizes := f.String("sizes", "100,1024,65536", "`bytes` of a record's value")
	producers := f.String("producers", "1,16", "numbers of producers")
	f.DurationVar(&p.duration, "duration", 0, "length of one run (default 1s; with -full 3s)")
	f.DurationVar(&p.warmup, "warmup", 0, "length of the run before the first one that counts (default half of -duration)")
	f.DurationVar(&p.rousing, "rouse", 2*time.Minute, "longest load that Kafka and NATS get before their first case; it ends when they become no faster")
	f.Uint64Var(&p.runBytes, "run-bytes", 160<<20, "bytes after which a run ends before its time; 0 for no limit")
	f.DurationVar(&p.linger, "linger", 0, "how long a Kafka producer waits for a batch to grow")
	f.IntVar(&p.repeat, "repeat", 0, "runs of each case; the median is shown (default 3; with -full 5)")
	f.Uint64Var(&p.seed, "seed", 1, "of the records' random values")
	f.IntVar(&p.inFlightBytes, "in-flight-bytes", 8<<20, "closed loop: bytes under way, of all producers together")
	f.IntVar(&p.inFlightRecords, "in-flight-records", 1<<15, "closed loop: records under way, of all producers together")
	f.Uint64Var(&p.fetchBytes, "fetch-bytes", 256<<20, "bytes that a consumer reads at most")
	f.Uint64Var(&p.restartBytes, "restart-bytes", 0, "bytes in the log when a server is killed (default 256 MiB; with -full 1 GiB)")
	f.Uint64Var(&p.copyBytes, "copy-bytes", 256<<20, "bytes that the bare copy moves")
	f.StringVar(&p.dir, "dir", "", "directory for all data, on the disk to measure (default a new one in TMPDIR)")
	f.StringVar(&p.replica, "replica", "", "program of hack/bench/cmd/replica")
	f.StringVar(&p.nats, "nats", "", "the program nats-server")
	f.StringVar(&p.kafka, "kafka", "", "the script hack/kafka.sh")
	f.StringVar(&p.markdown, "out", "", "write the tables to this `file`, too")
	f.StringVar(&p.jsonLines, "json", "", "write everything as lines of JSON to this `file`")
	f.IntVar(&p.port, "port", 29092, "first of the ports on 127.0.0.1; the next free ones are taken")
	f.BoolVar(&p.pprof, "pprof", false, "replicas serve net/http/pprof, at ports that are told")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	short := func(s, f time.Duration) time.Duration {
		if *full {
			return f
		}
		return s
	}
	p.duration = or(p.duration, short(time.Second, 3*time.Second))
	if p.repeat == 0 {
		p.repeat = 3
		if *full {
			p.repeat = 5
		}
	}
	p.warmup = or(p.warmup, p.duration/2)
	if *systems == "" {
		*systems = "tidemark"
		if *full {
			*systems = strings.Join(allSystems, ",")
		}
	}
	if p.restartBytes == 0 {
		p.restartBytes = 256 << 20
		if *full {
			p.restartBytes = 1 << 30
		}
	}
	for _, c := range []struct {
		flag, given string
		known       []string
		take        func(string)
	}{
		{"systems", *systems, allSystems, func(s string) { p.systems = append(p.systems, s) }},
		{"measure", *measures, allMeasures, func(s string) { p.measures = append(p.measures, s) }},
		{"flush", *flushes, []string{string(system.FlushNever), string(system.FlushEveryBatch)}, func(s string) { p.flushes = append(p.flushes, system.Flush(s)) }},
		{"acks", *acks, []string{string(system.AcksOne), string(system.AcksAll)}, func(s string) { p.acks = append(p.acks, system.Acks(s)) }},
	} {
		for _, s := range strings.Split(c.given, ",") {
			if !slices.Contains(c.known, s) {
				return p, fmt.Errorf("-%s: %q is none of %s", c.flag, s, strings.Join(c.known, ", "))
			}
			c.take(s)
		}
	}
	var err error
	if p.sizes, err = numbers("sizes", *sizes); err != nil {
		return p, err
	}
	if p.producers, err = numbers("producers", *producers); err != nil {
		return p, err
	}
	if p.repeat < 1 || p.inFlightBytes < 1 || p.inFlightRecords < 1 {
		return p, fmt.Errorf("-repeat, -in-flight-bytes and -in-flight-records are at least 1")
	}
	if p.dir == "" {
		p.dir, err = os.MkdirTemp("", "tidemark-bench-")
	}
	return p, err
}

func numbers(name, given string) (all []int, err error) {
	for _, s := range strings.Split(given, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1<<20 {
			return nil, fmt.Errorf("-%s: %q is no number from 1 to 1048576", name, s)
		}
		all = append(all, n)
	}
	return all, nil
}

func or(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}
