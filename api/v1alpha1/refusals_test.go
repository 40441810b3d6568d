package v1alpha1_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// object parses a ReplicatedPartition whose spec is the given YAML.
func object(t *testing.T, ns, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("tidemark.io/v1alpha1")
	u.SetKind("ReplicatedPartition")
	u.SetNamespace(ns)
	u.SetName(name)
	var m map[string]any
	if err := yaml.Unmarshal([]byte(spec), &m); err != nil {
		t.Fatalf("test spec %q: %v", spec, err)
	}
	if m != nil {
		u.Object["spec"] = m
	}
	return u
}

// mustRefuse checks that err is a refusal that mentions each of want.
func mustRefuse(t *testing.T, err error, want ...string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want the API server to refuse the object as invalid", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the refusal %q does not mention %q", err, w)
		}
	}
}

func TestCreateIsRefused(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	long := strings.Repeat("t", 250)
	for _, tc := range []struct {
		name, object, spec string
		want               []string
	}{
		{"name too long", strings.Repeat("n", 53), "", []string{"metadata.name", "52"}},
		{"name with a dot", "a.b", "", []string{"metadata.name", "DNS label"}},
		{"name that starts with a digit", "1a", "", []string{"metadata.name", "letter"}},
		{"no replicas", "x", "replicas: 0", []string{"spec.replicas"}},
		{"too many replicas", "x", "replicas: 10", []string{"spec.replicas"}},
		{"min ISR of zero", "x", "minInSyncReplicas: 0", []string{"spec.minInSyncReplicas"}},
		{"min ISR of ten", "x", "{replicas: 9, minInSyncReplicas: 10}", []string{"spec.minInSyncReplicas"}},
		{"preferred leader that is no replica", "x", "{replicas: 3, leaderElection: {preferredLeader: 3}}", []string{"spec.leaderElection.preferredLeader", "0 to replicas-1"}},
		{"preferred leader below zero", "x", "leaderElection: {preferredLeader: -1}", []string{"spec.leaderElection.preferredLeader"}},
		{"replacement at once", "x", "replacement: {afterSeconds: 59}", []string{"spec.replacement.afterSeconds"}},
		{"min ISR above replicas", "x", "{replicas: 2, minInSyncReplicas: 3}", []string{"spec.minInSyncReplicas", "replicas"}},
		{"min ISR above default replicas", "x", "minInSyncReplicas: 4", []string{"spec.minInSyncReplicas", "replicas"}},
		{"empty topic", "x", `topic: ""`, []string{"spec.topic"}},
		{"topic with a space", "x", `topic: "a b"`, []string{"spec.topic", "letters"}},
		{"topic of one dot", "x", `topic: "."`, []string{"spec.topic"}},
		{"topic of two dots", "x", `topic: ".."`, []string{"spec.topic"}},
		{"topic too long", "x", "topic: " + long, []string{"spec.topic"}},
		{"topic of Kafka's own", "x", "topic: __cluster_metadata", []string{"spec.topic"}},
		{"tiny volume", "x", "storage: {size: 1Mi}", []string{"spec.storage.size", "64Mi"}},
		{"negative volume", "x", "storage: {size: -1Gi}", []string{"spec.storage.size"}},
		{"volume size that is no quantity", "x", "storage: {size: big}", []string{"spec.storage.size"}},
		{"empty storage class", "x", `storage: {storageClassName: ""}`, []string{"spec.storage.storageClassName"}},
		{"storage class too long", "x", "storage: {storageClassName: " + strings.Repeat("c", 254) + "}", []string{"spec.storage.storageClassName"}},
		{"small segment", "x", "log: {segmentBytes: 1024}", []string{"spec.log.segmentBytes"}},
		{"huge segment", "x", "log: {segmentBytes: 2147483648}", []string{"spec.log.segmentBytes"}},
		{"retention of zero bytes", "x", "log: {retentionBytes: 0}", []string{"spec.log.retentionBytes", "-1"}},
		{"retention below -1 bytes", "x", "log: {retentionBytes: -2}", []string{"spec.log.retentionBytes"}},
		{"retention of zero seconds", "x", "log: {retentionSeconds: 0}", []string{"spec.log.retentionSeconds", "-1"}},
		{"retention below -1 seconds", "x", "log: {retentionSeconds: -2}", []string{"spec.log.retentionSeconds"}},
		{"retention of centuries", "x", "log: {retentionSeconds: 3153600001}", []string{"spec.log.retentionSeconds"}},
		{"tiny message", "x", "log: {maxMessageBytes: 1023}", []string{"spec.log.maxMessageBytes"}},
		{"huge message", "x", "log: {maxMessageBytes: 104857601}", []string{"spec.log.maxMessageBytes"}},
		{"segment of no time", "x", "log: {segmentSeconds: 0}", []string{"spec.log.segmentSeconds"}},
		{"segment of centuries", "x", "log: {segmentSeconds: 3153600001}", []string{"spec.log.segmentSeconds"}},
		{"unknown timestamp type", "x", "log: {messageTimestampType: AppendTime}", []string{"spec.log.messageTimestampType", "LogAppendTime"}},
		{"timestamps of no age", "x", "log: {messageTimestampBeforeMaxSeconds: 0}", []string{"spec.log.messageTimestampBeforeMaxSeconds"}},
		{"timestamps of no future", "x", "log: {messageTimestampAfterMaxSeconds: 0}", []string{"spec.log.messageTimestampAfterMaxSeconds"}},
		{"age of timestamps that do not count", "x", "log: {messageTimestampType: LogAppendTime, messageTimestampBeforeMaxSeconds: 5}", []string{"log.messageTimestampBeforeMaxSeconds", "CreateTime"}},
		{"future of timestamps that do not count", "x", "log: {messageTimestampType: LogAppendTime, messageTimestampAfterMaxSeconds: 5}", []string{"log.messageTimestampAfterMaxSeconds", "CreateTime"}},
		{"producers forgotten at once", "x", "log: {producerIdExpirationSeconds: 59}", []string{"spec.log.producerIdExpirationSeconds"}},
		{"producers remembered for years", "x", "log: {producerIdExpirationSeconds: 31536001}", []string{"spec.log.producerIdExpirationSeconds"}},
		{"unknown cleanup policy", "x", "log: {cleanupPolicy: compact}", []string{"spec.log.cleanupPolicy"}},
		{"compaction lag without compaction", "x", "log: {minCompactionLagSeconds: 0}", []string{"log.minCompactionLagSeconds", "log.cleanupPolicy"}},
		{"delete retention with the policy Delete", "x", "log: {cleanupPolicy: Delete, deleteRetentionSeconds: 5}", []string{"log.deleteRetentionSeconds", "log.cleanupPolicy"}},
		{"dirty ratio without compaction", "x", "log: {minDirtyRatioPercent: 50}", []string{"log.minDirtyRatioPercent", "log.cleanupPolicy"}},
		{"negative compaction lag", "x", "log: {cleanupPolicy: Compact, minCompactionLagSeconds: -1}", []string{"spec.log.minCompactionLagSeconds"}},
		{"negative delete retention", "x", "log: {cleanupPolicy: Compact, deleteRetentionSeconds: -1}", []string{"spec.log.deleteRetentionSeconds"}},
		{"dirty ratio above 100", "x", "log: {cleanupPolicy: CompactAndDelete, minDirtyRatioPercent: 101}", []string{"spec.log.minDirtyRatioPercent"}},
		{"message larger than a segment", "x", "log: {segmentBytes: 1048576, maxMessageBytes: 2097152}", []string{"log.maxMessageBytes", "log.segmentBytes"}},
		{"unknown flush policy", "x", "log: {flush: Sometimes}", []string{"spec.log.flush", "EveryBatch"}},
		{"no lag allowed", "x", "replication: {lagTimeMaxSeconds: 0}", []string{"spec.replication.lagTimeMaxSeconds"}},
		{"lag of more than an hour", "x", "replication: {lagTimeMaxSeconds: 3601}", []string{"spec.replication.lagTimeMaxSeconds"}},
		{"short fetch wait", "x", "replication: {fetchMaxWaitMilliseconds: 9}", []string{"spec.replication.fetchMaxWaitMilliseconds"}},
		{"long fetch wait", "x", "replication: {fetchMaxWaitMilliseconds: 30001, lagTimeMaxSeconds: 60}", []string{"spec.replication.fetchMaxWaitMilliseconds"}},
		{"fetch wait as long as the lag limit", "x", "replication: {fetchMaxWaitMilliseconds: 1000, lagTimeMaxSeconds: 1}", []string{"replication.fetchMaxWaitMilliseconds", "lagTimeMaxSeconds"}},
		{"small fetch", "x", "replication: {fetchMaxBytes: 65535}", []string{"spec.replication.fetchMaxBytes"}},
		{"huge fetch", "x", "replication: {fetchMaxBytes: 104857601}", []string{"spec.replication.fetchMaxBytes"}},
		{"short lease", "x", "leaderElection: {leaseDurationSeconds: 2}", []string{"spec.leaderElection.leaseDurationSeconds"}},
		{"long lease", "x", "leaderElection: {leaseDurationSeconds: 301}", []string{"spec.leaderElection.leaseDurationSeconds"}},
		{"unknown unclean policy", "x", "leaderElection: {unclean: Always}", []string{"spec.leaderElection.unclean", "LastKnownLeader"}},
		{"unknown retention when deleted", "x", "persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}", []string{"whenDeleted", "Retain"}},
		{"unknown retention when scaled", "x", "persistentVolumeClaimRetentionPolicy: {whenScaled: Keep}", []string{"whenScaled", "Retain"}},
		{"empty image", "x", `image: ""`, []string{"spec.image"}},
		{"image with a space", "x", `image: "a b"`, []string{"spec.image"}},
		{"image too long", "x", "image: " + strings.Repeat("i", 1025), []string{"spec.image"}},
		{"too many tolerations", "x", "scheduling: {tolerations: [" + strings.TrimSuffix(strings.Repeat("{key: a},", 65), ",") + "]}", []string{"spec.scheduling.tolerations"}},
		{"too many spread constraints", "x", "scheduling: {topologySpreadConstraints: [" + strings.TrimSuffix(strings.Repeat("{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule},", 17), ",") + "]}", []string{"spec.scheduling.topologySpreadConstraints"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustRefuse(t, api.Create(t.Context(), object(t, ns, tc.object, tc.spec)), tc.want...)
		})
	}
}

func TestUpdateIsRefused(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	for i, tc := range []struct {
		name, before, after string
		want                []string
	}{
		{"topic changed", "topic: a", "topic: b", []string{"spec.topic is immutable"}},
		{"topic set later", "", "topic: b", []string{"spec.topic is immutable"}},
		{"topic unset", "topic: a", "", []string{"spec.topic is immutable"}},
		{"volume shrunk", "storage: {size: 2Gi}", "storage: {size: 1Gi}", []string{"spec.storage.size", "shrink"}},
		{"volume shrunk in other units", "storage: {size: 1Gi}", "storage: {size: 1G}", []string{"spec.storage.size", "shrink"}},
		{"storage class changed", "storage: {storageClassName: a}", "storage: {storageClassName: b}", []string{"storageClassName is immutable"}},
		{"storage class set later", "", "storage: {storageClassName: b}", []string{"storageClassName is immutable"}},
		{"storage class unset", "storage: {storageClassName: a}", "storage: {size: 10Gi}", []string{"storageClassName is immutable"}},
		{"preferred leader scaled away", "{replicas: 3, leaderElection: {preferredLeader: 2}}", "{replicas: 2, leaderElection: {preferredLeader: 2}}", []string{"spec.leaderElection.preferredLeader"}},
		{"replicas below min ISR", "{replicas: 3, minInSyncReplicas: 2}", "{replicas: 1, minInSyncReplicas: 2}", []string{"minInSyncReplicas"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, ns, "u"+string(rune('a'+i)), tc.before)
			if err := api.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			next := object(t, ns, u.GetName(), tc.after)
			next.SetResourceVersion(u.GetResourceVersion())
			mustRefuse(t, api.Update(t.Context(), next), tc.want...)
		})
	}
}

func TestUpdateIsAllowed(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	for i, tc := range []struct{ name, before, after string }{
		{"topic named as the object", "", "topic: ab"},
		{"volume grown", "storage: {size: 1Gi}", "storage: {size: 2Gi}"},
		{"volume of the same size in other units", "storage: {size: 1Gi}", "storage: {size: 1024Mi}"},
		{"scaled", "replicas: 1", "replicas: 9"},
		{"image changed", "image: a", "image: b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := object(t, ns, strings.Repeat("a", 1)+string(rune('b'+i)), tc.before)
			if err := api.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			next := object(t, ns, u.GetName(), tc.after)
			next.SetResourceVersion(u.GetResourceVersion())
			if err := api.Update(t.Context(), next); err != nil {
				t.Errorf("update from %q to %q: %v", tc.before, tc.after, err)
			}
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	t.Run("scaling below a set min ISR is refused", func(t *testing.T) {
		u := object(t, ns, "fixed", "{replicas: 3, minInSyncReplicas: 3}")
		if err := api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, scaleTo(t, u, 2), "minInSyncReplicas")
	})
	t.Run("scaling with a default min ISR is allowed", func(t *testing.T) {
		u := object(t, ns, "free", "replicas: 3")
		if err := api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if err := scaleTo(t, u, 1); err != nil {
			t.Error(err)
		}
	})
}

func scaleTo(t *testing.T, u *unstructured.Unstructured, n int64) error {
	t.Helper()
	scale := &unstructured.Unstructured{Object: map[string]any{}}
	scale.SetAPIVersion("autoscaling/v1")
	scale.SetKind("Scale")
	scale.SetNamespace(u.GetNamespace())
	scale.SetName(u.GetName())
	if err := unstructured.SetNestedField(scale.Object, n, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	return api.SubResource("scale").Update(t.Context(), u, client.WithSubResourceBody(scale))
}
