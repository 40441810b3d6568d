package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidemark-io/tidemark/controllers"
)

// options are the flags.
type options struct {
	replicaImage, pullPolicy string
	pullSecrets, namespaces  []string
	workers                  int
	metricsAddress           string
	healthAddress            string
	leaderElection           bool
	leaderElectionNamespace  string
	logLevel                 string
	shutdownTimeout          time.Duration
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Run Tidemark's operator",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.AddCommand(selftestCommand())
	f := cmd.Flags()
	f.StringVar(&o.replicaImage, "replica-image", "", "image of replicas whose spec names none (required)")
	f.StringVar(&o.pullPolicy, "replica-image-pull-policy", string(corev1.PullIfNotPresent), "Always, IfNotPresent or Never")
	f.StringSliceVar(&o.pullSecrets, "replica-image-pull-secrets", nil, "names of Secrets, in the partitions' namespaces, to pull the image with")
	f.StringSliceVar(&o.namespaces, "watch-namespaces", nil, "namespaces to work in; all when empty")
	f.IntVar(&o.workers, "workers", 32, "partitions that are worked on at once")
	f.StringVar(&o.metricsAddress, "metrics-address", ":8080", "where /metrics is served; 0 for nowhere")
	f.StringVar(&o.healthAddress, "health-address", ":8081", "where /healthz and /readyz are served")
	f.BoolVar(&o.leaderElection, "leader-elect", false, "let one of several managers work, the others stand by")
	f.StringVar(&o.leaderElectionNamespace, "leader-elect-namespace", "", "namespace of the managers' own Lease; the pod's when empty")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "how long work in progress may take to end")
	return cmd
}

// A node that is lost with the working operator and a partition's leader on it must
// not delay the election much beyond the partition's own lease of ten seconds. An
// operator that cannot renew stops, and its container starts again and waits for the
// API server; replicas do not care.
const (
	standInAfter = 8 * time.Second
	stopAfter    = 6 * time.Second
	retryEvery   = time.Second
)

func run(ctx context.Context, o options) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	log.Info("operator starts", "replicaImage", o.replicaImage, "namespaces", o.namespaces)
	if err := start(ctx, mgr, o.shutdownTimeout+stopMargin); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

// stopMargin is what the manager needs beyond the time that it gives its work to end.
const stopMargin = 2 * time.Second

// start runs the manager until ctx ends, and gives it so long to stop. One whose caches never
// filled, since no API server answered, would not stop at all.
func start(ctx context.Context, mgr ctrl.Manager, limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		return fmt.Errorf("it did not stop within %s", limit)
	}
}

func newManager(o options) (ctrl.Manager, error) {
	policy, err := pullPolicy(o.pullPolicy)
	if err != nil {
		return nil, err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	// Elections must not queue behind the making of a hundred partitions.
	cfg.QPS, cfg.Burst = 100, 200
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return patience{next: rt, pause: time.Second} })
	scheme, err := controllers.NewScheme()
	if err != nil {
		return nil, err
	}
	var denials controllers.Denials
	caches, err := controllers.CacheOptions(o.namespaces, &denials)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		MapperProvider:          controllers.NewMapper,
		Cache:                   caches,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.healthAddress,
		LeaderElection:          o.leaderElection,
		LeaderElectionID:        "tidemark-operator",
		LeaderElectionNamespace: o.leaderElectionNamespace,
		LeaseDuration:           new(standInAfter), RenewDeadline: new(stopAfter), RetryPeriod: new(retryEvery),
		// The process ends when it has stopped working, so nothing runs on without the
		// Lease.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &o.shutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the operator: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("live", healthz.Ping), mgr.AddReadyzCheck("permissions", denials.Check),
		mgr.AddReadyzCheck("caches", controllers.CachesFilled(mgr.GetCache()))); err != nil {
		return nil, fmt.Errorf("add the checks: %w", err)
	}
	return mgr, controllers.Setup(mgr, controllers.Options{
		Defaults:   controllers.ReplicaDefaults{Image: o.replicaImage, PullPolicy: policy, PullSecrets: o.pullSecrets},
		Namespaces: o.namespaces, Workers: o.workers,
	})
}

func pullPolicy(s string) (corev1.PullPolicy, error) {
	switch p := corev1.PullPolicy(s); p {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return p, nil
	}
	return "", fmt.Errorf("--replica-image-pull-policy: %q is not Always, IfNotPresent or Never", s)
}
