package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

func TestDefaultsOfAnEmptySpec(t *testing.T) {
	needsAPI(t)
	for _, spec := range []string{"", "{}"} {
		ns := newNamespace(t)
		u := object(t, ns, "orders", spec)
		if err := api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		var rp v1alpha1.ReplicatedPartition
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(u), &rp); err != nil {
			t.Fatal(err)
		}
		checkDefaults(t, rp.Spec)
		if rp.Spec.MinInSyncReplicas != nil || rp.Spec.Topic != "" || rp.Spec.Log.Flush != "" || rp.Spec.Image != "" {
			t.Errorf("fields whose default depends on others must stay unset: %+v", rp.Spec)
		}
	}
}

func checkDefaults(t *testing.T, s v1alpha1.ReplicatedPartitionSpec) {
	t.Helper()
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"replicas", s.Replicas, int32(3)},
		{"storage.size", s.Storage.Size.String(), "10Gi"},
		{"log.segmentBytes", s.Log.SegmentBytes, int64(268435456)},
		{"log.retentionBytes", s.Log.RetentionBytes, int64(-1)},
		{"log.cleanupPolicy", s.Log.CleanupPolicy, v1alpha1.CleanupDelete},
		{"log.retentionSeconds", s.Log.RetentionSeconds, int64(604800)},
		{"log.segmentSeconds", s.Log.SegmentSeconds, int64(604800)},
		{"log.messageTimestampType", s.Log.MessageTimestampType, v1alpha1.TimestampCreateTime},
		{"log.messageTimestampBeforeMaxSeconds", s.Log.MessageTimestampBeforeMaxSeconds == nil, true},
		{"log.messageTimestampAfterMaxSeconds", s.Log.MessageTimestampAfterMaxSeconds == nil, true},
		{"log.producerIdExpirationSeconds", s.Log.ProducerIDExpirationSeconds, int64(86400)},
		{"log.maxMessageBytes", s.Log.MaxMessageBytes, int32(1048588)},
		{"replication.lagTimeMaxSeconds", s.Replication.LagTimeMaxSeconds, int32(30)},
		{"replication.fetchMaxWaitMilliseconds", s.Replication.FetchMaxWaitMilliseconds, int32(500)},
		{"replication.fetchMaxBytes", s.Replication.FetchMaxBytes, int32(10485760)},
		{"leaderElection.leaseDurationSeconds", s.LeaderElection.LeaseDurationSeconds, int32(10)},
		{"leaderElection.unclean", s.LeaderElection.Unclean, v1alpha1.UncleanNever},
		{"whenDeleted", s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, v1alpha1.RetainVolume},
		{"whenScaled", s.PersistentVolumeClaimRetentionPolicy.WhenScaled, v1alpha1.RetainVolume},
		{"resources.requests.cpu", s.Resources.Requests.Cpu().String(), "100m"},
		{"resources.requests.memory", s.Resources.Requests.Memory().String(), "128Mi"},
		{"resources.limits.memory", s.Resources.Limits.Memory().String(), "512Mi"},
	} {
		if c.got != c.want {
			t.Errorf("default of %s: got %v, want %v", c.field, c.got, c.want)
		}
	}
}

func TestDefaultsKeepWhatIsSet(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = ns, "orders"
	rp.Spec.Replicas = 5
	rp.Spec.Storage.Size = resource.MustParse("1Gi")
	rp.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if err := api.Create(t.Context(), rp); err != nil {
		t.Fatal(err)
	}
	if rp.Spec.Replicas != 5 || rp.Spec.Storage.Size.String() != "1Gi" {
		t.Errorf("set values were replaced: %+v", rp.Spec)
	}
	if got := rp.Spec.Resources.Limits; len(got) != 0 {
		t.Errorf("resources that the user set got limits %v besides", got)
	}
}

func TestDependentDefaults(t *testing.T) {
	for _, tc := range []struct {
		name      string
		spec      v1alpha1.ReplicatedPartitionSpec
		minISR    int
		flush     v1alpha1.FlushPolicy
		wantTopic string
	}{
		{"nothing set", v1alpha1.ReplicatedPartitionSpec{}, 2, v1alpha1.FlushNever, "orders"},
		{"one replica", v1alpha1.ReplicatedPartitionSpec{Replicas: 1}, 1, v1alpha1.FlushEveryBatch, "orders"},
		{"two replicas", v1alpha1.ReplicatedPartitionSpec{Replicas: 2}, 2, v1alpha1.FlushNever, "orders"},
		{"min ISR of one", v1alpha1.ReplicatedPartitionSpec{Replicas: 3, MinInSyncReplicas: ptr.To[int32](1)}, 1, v1alpha1.FlushEveryBatch, "orders"},
		{"flush set", v1alpha1.ReplicatedPartitionSpec{Replicas: 1, Log: v1alpha1.LogSpec{Flush: v1alpha1.FlushNever}}, 1, v1alpha1.FlushNever, "orders"},
		{"topic set", v1alpha1.ReplicatedPartitionSpec{Topic: "My.Topic"}, 2, v1alpha1.FlushNever, "My.Topic"},
		{"five and three", v1alpha1.ReplicatedPartitionSpec{Replicas: 5, MinInSyncReplicas: ptr.To[int32](3)}, 3, v1alpha1.FlushNever, "orders"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rp := &v1alpha1.ReplicatedPartition{Spec: tc.spec}
			rp.Name = "orders"
			if got := rp.EffectiveMinInSyncReplicas(); got != tc.minISR {
				t.Errorf("min ISR: got %d, want %d", got, tc.minISR)
			}
			if got := rp.EffectiveFlush(); got != tc.flush {
				t.Errorf("flush: got %s, want %s", got, tc.flush)
			}
			if got := rp.EffectiveTopic(); got != tc.wantTopic {
				t.Errorf("topic: got %s, want %s", got, tc.wantTopic)
			}
		})
	}
}

func TestLeaseDurationDefaultsToTenSeconds(t *testing.T) {
	rp := &v1alpha1.ReplicatedPartition{}
	if got, want := rp.EffectiveLeaseDuration(), 10*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	rp.Spec.LeaderElection.LeaseDurationSeconds = 4
	if got, want := rp.EffectiveLeaseDuration(), 4*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples found: %v", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var rp v1alpha1.ReplicatedPartition
		if err := yaml.UnmarshalStrict(data, &rp); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		rp.Namespace = ns
		if err := api.Create(t.Context(), &rp); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
