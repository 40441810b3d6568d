package standalone

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-io/tidemark/pkg/replica"
)

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// serve runs a standalone replica until the returned function is called.
func serve(t *testing.T, o Options) (stop func()) {
	t.Helper()
	cfg, closeStore, err := Config(o, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- replica.Run(ctx, cfg) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the replica ended with: %v", err)
		}
		closeStore()
	}
}

func client(t *testing.T, address string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic("orders"),
		kgo.MetadataMinAge(20*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRecordsOutliveARestart(t *testing.T) {
	o := Options{DataDir: t.TempDir(), Topic: "orders", Listen: freeAddress(t)}
	stop := serve(t, o)
	if err := client(t, o.Listen).ProduceSync(t.Context(), kgo.StringRecord("one"), kgo.StringRecord("two")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	stop()
	stop = serve(t, o)
	defer stop()
	c := client(t, o.Listen)
	if err := c.ProduceSync(t.Context(), kgo.StringRecord("three")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		fetches := c.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if want := []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	good := Options{DataDir: t.TempDir(), Topic: "orders", Listen: "127.0.0.1:9092"}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"topic with a slash":  {func(o *Options) { o.Topic = "a/b" }, "--topic"},
		"topic that is a dot": {func(o *Options) { o.Topic = ".." }, "--topic"},
		"no port":             {func(o *Options) { o.Listen = "localhost" }, "--listen"},
		"port 0":              {func(o *Options) { o.Listen = "localhost:0" }, "--listen"},
		"port that is a name": {func(o *Options) { o.Listen = "localhost:kafka" }, "--listen"},
		"IPv6 unbracketed":    {func(o *Options) { o.Listen = "::1:9092" }, "--listen"},
		"all addresses told":  {func(o *Options) { o.Advertise = "[::]:9092" }, "--advertise"},
		"no port told":        {func(o *Options) { o.Advertise = "kafka.example.com" }, "--advertise"},
	} {
		o := good
		tc.change(&o)
		if _, _, err := Config(o, logr.Discard()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error that names %s", name, err, tc.want)
		}
	}
}

func TestWhatClientsAreTold(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ listen, advertise, host string }{
		{"127.0.0.1:9092", "", "127.0.0.1"}, {"[::1]:9092", "", "::1"}, {"[::]:9092", "", name}, {":9092", "", name},
		{"0.0.0.0:9092", "kafka.example.com:9092", "kafka.example.com"}, {"127.0.0.1:1", "[2001:db8::1]:9092", "2001:db8::1"},
	} {
		cfg, closeStore, err := Config(Options{DataDir: t.TempDir(), Topic: "orders", Listen: tc.listen, Advertise: tc.advertise}, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		closeStore()
		if got := cfg.Address; got.Host != tc.host || got.ClientPort != 9092 || cfg.ClientListen != tc.listen {
			t.Errorf("--listen %s --advertise %q: listens on %s, tells %+v", tc.listen, tc.advertise, cfg.ClientListen, got)
		}
	}
}

func TestDirectoryOfAnotherTopicIsRefused(t *testing.T) {
	o := Options{DataDir: t.TempDir(), Topic: "orders", Listen: freeAddress(t)}
	serve(t, o)()
	o.Topic = "payments"
	cfg, closeStore, err := Config(o, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	if err := replica.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("ended with %v, want a refusal that names the topic that the volume belongs to", err)
	}
}
