package controllers

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const (
	containerName = "replica"
	dataDir       = "/var/lib/tidemark"
	witnessDir    = "/run/tidemark"
	userID        = 65532
	// stopSeconds is the grace period: hand over, flush, mark, exit.
	stopSeconds = 30
	// memoryLimitShare is the part of the memory limit that Go's collector aims at,
	// in percent; the rest is for stacks and the runtime.
	memoryLimitShare = 85
)

func renderPod(rp *v1alpha1.ReplicatedPartition, id epoch.ReplicaID, d ReplicaDefaults) *corev1.Pod {
	meta := owned(rp, rp.ReplicaName(int32(id)))
	meta.Labels = replicaLabels(rp, id)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			Hostname:                      rp.ReplicaName(int32(id)),
			Subdomain:                     rp.ReplicasServiceName(),
			ServiceAccountName:            rp.AccessName(),
			EnableServiceLinks:            ptr.To(false),
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr.To[int64](stopSeconds),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](userID), RunAsGroup: ptr.To[int64](userID), FSGroup: ptr.To[int64](userID),
				FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ImagePullSecrets:          pullSecrets(d),
			Affinity:                  affinity(rp),
			Tolerations:               rp.Spec.Scheduling.Tolerations,
			TopologySpreadConstraints: spread(rp),
			Containers:                []corev1.Container{renderContainer(rp, id, d)},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: rp.VolumeClaimName(int32(id))}}},
				// The witness has to outlive a process and die with the pod or the machine:
				// that is what a memory-backed emptyDir does (DESIGN.md, the directory promise).
				{Name: "witness", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Mi"))}}},
			},
		},
	}
}

func renderContainer(rp *v1alpha1.ReplicatedPartition, id epoch.ReplicaID, d ReplicaDefaults) corev1.Container {
	return corev1.Container{
		Name:            containerName,
		Image:           cmp.Or(rp.Spec.Image, d.Image),
		ImagePullPolicy: cmp.Or(d.PullPolicy, corev1.PullIfNotPresent),
		Command:         []string{"/replica"},
		Args: []string{"run",
			"--namespace=" + rp.Namespace, "--partition=" + rp.Name, "--replica-id=" + strconv.Itoa(int(id)),
			"--data-dir=" + dataDir, "--witness-dir=" + witnessDir},
		Env:       environment(rp),
		Resources: rp.Spec.Resources,
		Ports: []corev1.ContainerPort{
			{Name: "tcp-kafka", ContainerPort: v1alpha1.PortKafka, Protocol: corev1.ProtocolTCP},
			{Name: "tcp-replication", ContainerPort: v1alpha1.PortReplication, Protocol: corev1.ProtocolTCP},
			{Name: "http", ContainerPort: v1alpha1.PortHTTP, Protocol: corev1.ProtocolTCP},
		},
		// Recovering a large log takes its time; ten minutes are allowed.
		StartupProbe:   probe("/healthz", 1, 600),
		LivenessProbe:  probe("/healthz", 10, 3),
		ReadinessProbe: probe("/readyz", 1, 2),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: dataDir}, {Name: "witness", MountPath: witnessDir}},
	}
}

func probe(path string, periodSeconds, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: periodSeconds, FailureThreshold: failures, SuccessThreshold: 1, TimeoutSeconds: min(5, max(1, periodSeconds)),
	}
}

func environment(rp *v1alpha1.ReplicatedPartition) []corev1.EnvVar {
	env := []corev1.EnvVar{
		fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_UID", "metadata.uid"),
		fieldEnv("POD_IP", "status.podIP"), fieldEnv("NODE_NAME", "spec.nodeName"),
	}
	if limit, ok := rp.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: fmt.Sprintf("%dB", limit.Value()/100*memoryLimitShare)})
	}
	return env
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func pullSecrets(d ReplicaDefaults) []corev1.LocalObjectReference {
	var refs []corev1.LocalObjectReference
	for _, name := range d.PullSecrets {
		refs = append(refs, corev1.LocalObjectReference{Name: name})
	}
	return refs
}

// affinity is the user's, else a strong wish for different nodes.
func affinity(rp *v1alpha1.ReplicatedPartition) *corev1.Affinity {
	if rp.Spec.Scheduling.Affinity != nil || len(rp.Spec.Scheduling.TopologySpreadConstraints) > 0 {
		return rp.Spec.Scheduling.Affinity
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: podSelector(rp)},
			},
		}},
	}}
}

// spread is the user's, with a selector filled in, else over nodes and zones as far
// as that is possible: a cluster of one node has to work too.
func spread(rp *v1alpha1.ReplicatedPartition) []corev1.TopologySpreadConstraint {
	selector := &metav1.LabelSelector{MatchLabels: podSelector(rp)}
	if own := rp.Spec.Scheduling.TopologySpreadConstraints; len(own) > 0 {
		out := make([]corev1.TopologySpreadConstraint, len(own))
		for i := range own {
			own[i].DeepCopyInto(&out[i])
			if out[i].LabelSelector == nil {
				out[i].LabelSelector = selector
			}
		}
		return out
	}
	var out []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		out = append(out, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
		})
	}
	return out
}
