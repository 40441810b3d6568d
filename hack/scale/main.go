package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

type options struct {
	manager string
	crds    string
	sizes   string
	lease   time.Duration
	idle    time.Duration
	deaths  int
	// gap is the time from one death to the next.
	gap     time.Duration
	workers int
	// memory is GOMEMLIMIT of the operator.
	memory string
	out    string
	limit  time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "", "the operator's binary (required)")
	flag.StringVar(&o.crds, "crds", filepath.Join("config", "crd", "bases"), "directory of the CRD")
	flag.StringVar(&o.sizes, "sizes", "100,1000", "numbers of partitions, one run each")
	flag.DurationVar(&o.lease, "lease", 10*time.Second, "lease duration; each leader renews every third of it")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long the idle operator is watched")
	flag.IntVar(&o.deaths, "deaths", 100, "leaders killed for the reaction time, one after the other")
	flag.DurationVar(&o.gap, "gap", 500*time.Millisecond, "time from one death to the next, at least")
	flag.IntVar(&o.workers, "workers", 0, "the operator's workers; its default when 0")
	flag.StringVar(&o.memory, "gomemlimit", "218MiB", "the operator's GOMEMLIMIT; the chart's by default")
	flag.StringVar(&o.out, "out", "", "where the table goes, beside standard output")
	flag.DurationVar(&o.limit, "limit", 20*time.Minute, "how long partitions may take to converge")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var table strings.Builder
	fmt.Fprintf(&table, "Lease %s: a heartbeat of each partition every %s. Idle for %s. %d deaths. %s\n\n", o.lease, o.lease/3, o.idle, o.deaths, loadAverage())
	table.WriteString("| partitions | created until all available | cold until all available | RSS cold, peak | CPU cold | RSS idle | CPU idle | heartbeats/s | writes idle /partition/min | reads idle | reconciles idle | death to CAS p50 | p99 | max | a heartbeat meanwhile p50 | p99 | max | 429 |\n")
	table.WriteString("|" + strings.Repeat(" --- |", 18) + "\n")
	for _, size := range strings.Split(o.sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		row, err := runSize(ctx, o, n)
		if err != nil {
			return fmt.Errorf("%d partitions: %w", n, err)
		}
		table.WriteString(row)
	}
	fmt.Print(table.String())
	if o.out != "" {
		return os.WriteFile(o.out, []byte(table.String()), 0o644)
	}
	return nil
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	return "Load average before: " + strings.Join(strings.Fields(string(b))[:1], "") + "."
}

// runSize measures one number of partitions, on an API server of its own.
func runSize(ctx context.Context, o options, n int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env := &envtest.Environment{CRDDirectoryPaths: []string{o.crds}, ErrorIfCRDPathMissing: true}
	// A Service of each partition has an address, and there are 254 by default.
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/12")
	cfg, err := env.Start()
	if err != nil {
		return "", fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = env.Stop() }()
	user, err := env.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, &rest.Config{})
	if err != nil {
		return "", err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", err
	}
	w, err := newWorld(ctx, cfg, o.lease)
	if err != nil {
		return "", err
	}
	defer func() { cancel(); w.wait.Wait() }()
	return measureSize(ctx, o, w, n, func() (*operator, error) { return startOperator(ctx, o.manager, path, dir, o.workers, o.memory) })
}

func measureSize(ctx context.Context, o options, w *world, n int, start func() (*operator, error)) (string, error) {
	first, err := start()
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := w.create(ctx, n); err != nil {
		first.stop()
		return "", err
	}
	err = first.converge(ctx, o.limit, n)
	created := time.Since(began)
	made, _ := first.measure()
	first.stop()
	if err != nil {
		return "", err
	}
	say("%d partitions made in %s (RSS %s, CPU %s, %.0f writes, %.0f reads, %.0f answers 429)", n, created.Round(time.Millisecond), mib(made.peak), made.cpu, made.writes, made.reads, made.throttled)
	op, err := start()
	if err != nil {
		return "", err
	}
	defer op.stop()
	if err := op.converge(ctx, o.limit, n); err != nil {
		return "", err
	}
	cold := time.Since(op.began)
	warm, err := op.measure()
	if err != nil {
		return "", err
	}
	say("cold start in %s (RSS %s, CPU %s, %.0f writes, %.0f reads)", cold.Round(time.Millisecond), mib(warm.peak), warm.cpu, warm.writes, warm.reads)
	if err := sleep(ctx, 10*time.Second); err != nil { // what a start leaves to do
		return "", err
	}
	before, err := op.measure()
	if err != nil {
		return "", err
	}
	if err := sleep(ctx, o.idle); err != nil {
		return "", err
	}
	after, err := op.measure()
	if err != nil {
		return "", err
	}
	if what := after.since(before); what != "" {
		say("done while idle: %s", what)
	}
	w.takeRenewals()
	alive, err := op.measure()
	if err != nil {
		return "", err
	}
	reactions, err := deaths(ctx, w, min(o.deaths, n), n, o.gap)
	if err != nil {
		return "", err
	}
	renewals := w.takeRenewals()
	end, err := op.measure()
	if err != nil {
		return "", err
	}
	each := float64(len(reactions))
	say("%d deaths in %s: %.1f reads, %.1f writes, %.1f reconciles, CPU %s for each; done: %s", len(reactions), end.at.Sub(alive.at).Round(time.Millisecond),
		(end.reads-alive.reads)/each, (end.writes-alive.writes)/each, (end.reconciles-alive.reconciles)/each, (end.cpu-alive.cpu)/time.Duration(len(reactions)), end.since(alive))
	minutes := after.at.Sub(before.at).Minutes()
	perMinute := func(a, b float64) float64 { return (b - a) / minutes / float64(n) }
	return fmt.Sprintf("| %d | %s | %s | %s, %s | %s | %s | %.1f %% | %.0f | %.3f | %.3f | %.3f | %s | %s | %s | %s | %s | %s | %.0f |\n", n,
		created.Round(100*time.Millisecond), cold.Round(100*time.Millisecond), mib(warm.rss), mib(end.peak), warm.cpu,
		mib(after.rss), 100*(after.cpu-before.cpu).Seconds()/after.at.Sub(before.at).Seconds(), float64(n)/(o.lease/3).Seconds(),
		perMinute(before.writes, after.writes), perMinute(before.reads, after.reads), perMinute(before.reconciles, after.reconciles),
		quantile(reactions, 0.5), quantile(reactions, 0.99), quantile(reactions, 1),
		quantile(renewals, 0.5), quantile(renewals, 0.99), quantile(renewals, 1), made.throttled+end.throttled), nil
}

// converge waits until the operator sees all partitions available.
func (o *operator) converge(ctx context.Context, limit time.Duration, n int) error {
	var last float64
	err := until(ctx, limit, func() (bool, error) {
		s, err := o.scrape()
		last = s.available
		return err == nil && int(s.available) == n, nil
	})
	if err != nil {
		return fmt.Errorf("%.0f of %d partitions are available: %w", last, n, err)
	}
	return nil
}

// deaths kills the leaders of some partitions of n, one after the other.
func deaths(ctx context.Context, w *world, some, n int, gap time.Duration) ([]time.Duration, error) {
	var out []time.Duration
	next := time.NewTicker(max(gap, time.Nanosecond))
	defer next.Stop()
	for i := range some {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-next.C:
		}
		d, err := w.kill(ctx, fmt.Sprintf("p%05d", i*n/some))
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	slices.Sort(out)
	return out, nil
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	i := min(len(sorted)-1, int(q*float64(len(sorted))))
	return sorted[i].Round(time.Millisecond / 10)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func say(format string, args ...any) {
	_, _ = fmt.Fprintf(io.Writer(os.Stderr), format+"\n", args...)
}
