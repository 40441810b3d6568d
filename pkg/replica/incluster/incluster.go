package incluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/replica"
)

// Options name the replica and its pod. The flags and the environment of the binary
// fill them.
type Options struct {
	Namespace  string
	Partition  string
	ReplicaID  int
	DataDir    string
	WitnessDir string
	// PodName, PodUID and PodIP come by the downward API.
	PodName string
	PodUID  string
	PodIP   string
	// Kubeconfig is for running outside of a pod; empty means the service account.
	Kubeconfig string
	// ListenHost is the address to listen on; empty for all of the pod's.
	ListenHost string
	// Ports to listen on.
	ClientPort, ReplicationPort, HTTPPort int
}

// Validate says what is missing.
func (o Options) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"--namespace", o.Namespace}, {"--partition", o.Partition}, {"--data-dir", o.DataDir},
		{"--pod-name (or $POD_NAME)", o.PodName}, {"--pod-uid (or $POD_UID)", o.PodUID}, {"--pod-ip (or $POD_IP)", o.PodIP},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is needed; the operator sets it, and `replica standalone` runs without Kubernetes", f.name)
		}
	}
	if o.ReplicaID < 0 {
		return errors.New("--replica-id is needed and must not be negative")
	}
	return nil
}

// retryRead is the pause before the spec is read again at start.
const retryRead = time.Second

// Config reads the spec, waiting until the API server gives it, and makes the
// replica's configuration.
func Config(ctx context.Context, o Options, log logr.Logger) (replica.Config, error) {
	if err := o.Validate(); err != nil {
		return replica.Config{}, err
	}
	rc, err := restConfig(o.Kubeconfig)
	if err != nil {
		return replica.Config{}, fmt.Errorf("reach the API server: %w", err)
	}
	rc.UserAgent = "tidemark-replica"
	objects, err := newReader(rc)
	if err != nil {
		return replica.Config{}, err
	}
	p, err := waitForPartition(ctx, objects, o, log)
	if err != nil {
		return replica.Config{}, err
	}
	leases, err := lease.NewClient(rc)
	if err != nil {
		return replica.Config{}, err
	}
	settings := Settings(p)
	stored := lease.Config{Client: leases, Namespace: o.Namespace, Name: p.LeaseName(), Timeout: callTimeout(settings), Log: log.WithName("record")}
	if stored.TopicID, err = objects.topicID(ctx, p, stored, log); err != nil {
		return replica.Config{}, err
	}
	records, err := lease.New(stored)
	if err != nil {
		return replica.Config{}, err
	}
	starts, err := countStarts(o.WitnessDir, func() (int32, error) { return objects.restarts(ctx, o.Namespace, o.PodName) })
	if err != nil {
		return replica.Config{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return replica.Config{}, fmt.Errorf("read the machine's boot id: %w", err)
	}
	return replica.Config{
		ID: epoch.ReplicaID(o.ReplicaID), Topic: p.EffectiveTopic(), TopicID: stored.TopicID, DataDir: o.DataDir, WitnessDir: o.WitnessDir,
		Address:      epoch.Address{Host: o.PodIP, ClientPort: int32(o.ClientPort), ReplicationPort: int32(o.ReplicationPort)},
		ClientListen: o.listen(o.ClientPort), ReplicationListen: o.listen(o.ReplicationPort), HTTPListen: o.listen(o.HTTPPort),
		BootID: strings.TrimSpace(string(boot)), PodUID: o.PodUID, RestartCount: starts,
		CheckPod: func(ctx context.Context) error { return objects.checkPod(ctx, o.Namespace, o.PodName, o.PodUID) },
		Records:  records, Settings: settings, Listeners: o.listeners(p), Log: log,
		WatchSpec: func(ctx context.Context, onChange func(replica.Spec)) {
			objects.watchSpec(ctx, o.Namespace, o.Partition, func(p *v1alpha1.ReplicatedPartition) {
				onChange(replica.Spec{Settings: Settings(p), Listeners: o.listeners(p)})
			})
		},
	}, nil
}

func (o Options) listen(port int) string { return net.JoinHostPort(o.ListenHost, strconv.Itoa(port)) }

// callTimeout leaves time for a second try before the lease expires.
func callTimeout(s replica.Settings) time.Duration {
	return min(lease.DefaultTimeout, s.LeaseDuration/3)
}

func waitForPartition(ctx context.Context, r *reader, o Options, log logr.Logger) (*v1alpha1.ReplicatedPartition, error) {
	told := false
	for {
		p, err := r.partition(ctx, o.Namespace, o.Partition)
		if err == nil {
			return p, nil
		}
		if !told {
			told = true
			log.Error(err, "cannot read the spec; trying again")
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryRead):
		}
	}
}
