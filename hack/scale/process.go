package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// operator is one life of the manager's binary.
type operator struct {
	cmd     *exec.Cmd
	metrics string
	log     *os.File
	began   time.Time
}

// startOperator starts it, and waits for its metrics.
func startOperator(ctx context.Context, binary, kubeconfig, dir string, workers int, memory string) (*operator, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	health, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	args := []string{"--replica-image=example.test/tidemark:1", "--metrics-address=" + port, "--health-address=" + health, "--log-level=warn"}
	if workers > 0 {
		args = append(args, "--workers="+strconv.Itoa(workers))
	}
	o := &operator{cmd: exec.CommandContext(ctx, binary, args...), metrics: "http://" + port + "/metrics", log: log, began: time.Now()}
	o.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOMEMLIMIT="+memory)
	o.cmd.Stdout, o.cmd.Stderr = log, log
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return o, until(ctx, time.Minute, func() (bool, error) { _, err := o.scrape(); return err == nil, nil })
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func (o *operator) stop() {
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
	_ = o.log.Close()
}

// sample is what the operator has used and asked for since its start.
type sample struct {
	at            time.Time
	cpu           time.Duration
	rss, peak     int64 // bytes
	reads, writes float64
	throttled     float64 // answers 429
	reconciles    float64
	available     float64 // partitions
	// done holds the operator's own counters of what it did.
	done map[string]float64
}

// plain asks for metrics as they are: to compress them would be on the operator's bill.
var plain = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// scrape reads the operator's metrics.
func (o *operator) scrape() (sample, error) {
	s := sample{at: time.Now(), done: map[string]float64{}}
	resp, err := plain.Get(o.metrics)
	if err != nil {
		return s, err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := series(lines.Text())
		if !ok {
			continue
		}
		switch {
		case strings.HasPrefix(name, "tidemark_partition_available{"):
			s.available += value
		case strings.HasPrefix(name, "tidemark_") && strings.Contains(name, "_total"):
			s.done[name] += value
		case strings.HasPrefix(name, "controller_runtime_reconcile_total{"):
			s.reconciles += value
		case strings.HasPrefix(name, "rest_client_requests_total{"):
			s.count(name, value)
		}
	}
	return s, lines.Err()
}

// since names what was done after another sample, for a person.
func (s sample) since(before sample) string {
	var out []string
	for name, n := range s.done {
		if d := n - before.done[name]; d != 0 {
			out = append(out, fmt.Sprintf("%s +%.0f", name, d))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (s *sample) count(name string, n float64) {
	if strings.Contains(name, `code="429"`) {
		s.throttled += n
	}
	if strings.Contains(name, `method="GET"`) {
		s.reads += n
	} else {
		s.writes += n
	}
}

func series(line string) (string, float64, bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || line[0] == '#' {
		return "", 0, false
	}
	v, err := strconv.ParseFloat(line[i+1:], 64)
	return line[:i], v, err == nil
}

// measure is a scrape with what /proc says of the process.
func (o *operator) measure() (sample, error) {
	s, err := o.scrape()
	if err != nil {
		return s, err
	}
	dir := fmt.Sprintf("/proc/%d/", o.cmd.Process.Pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	s.cpu = time.Duration(user+system) * (time.Second / 100) // USER_HZ
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return s, err
	}
	s.rss, s.peak = kib(string(status), "VmRSS:"), kib(string(status), "VmHWM:")
	return s, nil
}

func kib(status, key string) int64 {
	_, rest, _ := strings.Cut(status, key)
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n << 10
}

// until asks every 50 ms, or more seldom where the asking takes long: with thousands of partitions
// the operator would be busy with answers.
func until(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		began := time.Now()
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s", limit)
		case <-time.After(max(50*time.Millisecond, 20*time.Since(began))):
		}
	}
}
