package controllers

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// A difference in a golden pod restarts every replica in every cluster on an upgrade
// of the operator (H52). Rewrite the files only where that is meant.
func TestRenderGolden(t *testing.T) {
	for _, tc := range []struct {
		name     string
		change   func(*v1alpha1.ReplicatedPartition)
		defaults ReplicaDefaults
	}{
		{"default", nil, ReplicaDefaults{Image: "example.test/tidemark:1"}},
		{"full", func(rp *v1alpha1.ReplicatedPartition) {
			rp.Spec.Replicas = 1
			rp.Spec.Image = "example.test/own:2"
			class := "fast"
			rp.Spec.Storage.StorageClassName = &class
			rp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteVolume
			rp.Spec.Scheduling.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
			rp.Spec.Scheduling.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
		}, ReplicaDefaults{Image: "example.test/tidemark:1", PullPolicy: corev1.PullNever, PullSecrets: []string{"registry"}}},
		{"listeners", func(rp *v1alpha1.ReplicatedPartition) {
			rp.Spec.Replicas = 2
			port, class := int32(31001), "internal"
			rp.Spec.Listeners = []v1alpha1.ListenerSpec{
				{Name: "external", Type: v1alpha1.ListenerNodePort, Port: 9094, ExternalTrafficPolicy: "Local",
					Replicas: []v1alpha1.ListenerReplica{{ID: 1, NodePort: &port, AdvertisedHost: "kafka-1.example.com"}}},
				{Name: "lb", Type: v1alpha1.ListenerLoadBalancer, Port: 9095, LoadBalancerClass: &class, LoadBalancerSourceRanges: []v1alpha1.SourceRange{"2001:db8::/32"},
					IPFamilyPolicy: "PreferDualStack", IPFamilies: []v1alpha1.IPFamily{"IPv6"}, Annotations: map[string]v1alpha1.AnnotationValue{"example.com/a": "all", "example.com/b": "all"},
					Replicas:  []v1alpha1.ListenerReplica{{ID: 0, Annotations: map[string]v1alpha1.AnnotationValue{"example.com/a": "own"}}},
					Bootstrap: &v1alpha1.ListenerBootstrap{Annotations: map[string]v1alpha1.AnnotationValue{"example.com/a": "first"}}},
			}
		}, ReplicaDefaults{Image: "example.test/tidemark:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rp := defaulted()
			if tc.change != nil {
				tc.change(rp)
			}
			topic, err := topicID(rp)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Render(rp, epoch.New(topic, target(rp), rp.EffectiveMinInSyncReplicas(), "c"), tc.defaults)
			if err != nil {
				t.Fatal(err)
			}
			objects := want.Children
			for _, id := range sortedIDs(want.Pods) {
				objects = append(objects, want.Pods[id])
			}
			golden(t, filepath.Join("testdata", tc.name+".yaml"), objects)
		})
	}
}

// defaulted is a partition as the API server would have it.
func defaulted() *v1alpha1.ReplicatedPartition {
	rp := world().Partition
	rp.Spec.Replicas = 3
	rp.Spec.Storage.Size = resource.MustParse("10Gi")
	rp.Spec.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
	return rp
}

func golden(t *testing.T, file string, objects []client.Object) {
	t.Helper()
	var got bytes.Buffer
	for _, obj := range objects {
		m, err := applyConfiguration(obj)
		if err != nil {
			t.Fatal(err)
		}
		b, err := yaml.Marshal(m.Object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(b)
	}
	if *rewrite {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the rendered objects differ from %s; see what changed with -rewrite and git diff\n%s", file, got.String())
	}
}

func TestMemoryLimitOfGoFollowsTheContainers(t *testing.T) {
	rp := defaulted()
	find := func() string {
		for _, e := range environment(rp) {
			if e.Name == "GOMEMLIMIT" {
				return e.Value
			}
		}
		return ""
	}
	if got, want := find(), "456340265B"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rp.Spec.Resources.Limits = nil
	if got := find(); got != "" {
		t.Errorf("without a limit: got %q, want none", got)
	}
}

func TestOneReplicaHasNoBudget(t *testing.T) {
	o := world()
	o.Record.Replicas = o.Record.Replicas[:1]
	if b := renderBudget(o.Partition, o.Record); b != nil {
		t.Errorf("got %+v: it would block every drain (H46)", b)
	}
}

func TestSpecOfLogAndReplicationDoesNotRestartPods(t *testing.T) {
	o := world()
	before := o.Desired.Pods[0].Annotations[v1alpha1.AnnotationTemplateHash]
	o.Partition.Spec.Log.RetentionSeconds = 5
	o.Partition.Spec.Replication.LagTimeMaxSeconds = 7
	o.Partition.Spec.LeaderElection.LeaseDurationSeconds = 30
	o.Partition.Spec.Replicas = 5
	o.render()
	if after := o.Desired.Pods[0].Annotations[v1alpha1.AnnotationTemplateHash]; after != before {
		t.Error("the pods would be replaced for what replicas read by themselves")
	}
	o.Partition.Spec.Image = "example.test/tidemark:2"
	o.render()
	if after := o.Desired.Pods[0].Annotations[v1alpha1.AnnotationTemplateHash]; after == before {
		t.Error("another image makes no difference")
	}
}

func TestApplied(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.Service)
		want   bool
	}{
		{"as applied", func(*corev1.Service) {}, true},
		{"filled in by the API server", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.SessionAffinity, s.ResourceVersion = "10.0.0.1", corev1.ServiceAffinityNone, "7"
		}, true},
		{"another's label, annotation and owner", func(s *corev1.Service) {
			s.Labels["team"], s.Annotations["note"] = "a", "b"
			s.OwnerReferences = append(s.OwnerReferences, *s.OwnerReferences[0].DeepCopy())
			s.OwnerReferences[1].UID = "other"
		}, true},
		{"a label of ours taken away", func(s *corev1.Service) { delete(s.Labels, v1alpha1.LabelPartition) }, false},
		{"a port added", func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80}) }, false},
		{"the selector changed", func(s *corev1.Service) { s.Spec.Selector[v1alpha1.LabelPartition] = "x" }, false},
		{"applied from another spec", func(s *corev1.Service) { s.Annotations[v1alpha1.AnnotationAppliedHash] = "x" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			i := slices.IndexFunc(o.Desired.Children, func(c client.Object) bool { return describe(c) == "Service orders" })
			want := o.Desired.Children[i]
			live := want.DeepCopyObject().(*corev1.Service)
			tc.change(live)
			if got := applied(want, live); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestVolumesNeverShrink(t *testing.T) {
	o := world()
	claim := func(size string) *corev1.PersistentVolumeClaim {
		o.Partition.Spec.Storage.Size = resource.MustParse(size)
		return renderClaim(o.Partition, o.Record, o.Record.Replicas[0])
	}
	for _, tc := range []struct{ want, live, size string }{{"1Gi", "2Gi", "2Gi"}, {"2Gi", "1Gi", "2Gi"}, {"1Gi", "1Gi", "1Gi"}} {
		want, live := claim(tc.want), claim(tc.live)
		class := "standard"
		live.Spec.StorageClassName = &class
		growOnly(want, live)
		if got := want.Spec.Resources.Requests.Storage().String(); got != tc.size {
			t.Errorf("spec %s, claim %s: got %s, want %s", tc.want, tc.live, got, tc.size)
		}
		if want.Spec.StorageClassName == nil || *want.Spec.StorageClassName != class {
			t.Error("the class that was filled in would be changed")
		}
	}
}
