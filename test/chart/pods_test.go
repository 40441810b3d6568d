package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// podTemplate is the pod of a Deployment, or the Pod itself.
func podTemplate(t *testing.T, o *unstructured.Unstructured) corev1.PodTemplateSpec {
	t.Helper()
	from := o.Object
	if o.GetKind() == "Deployment" {
		var found bool
		var err error
		if from, found, err = unstructured.NestedMap(o.Object, "spec", "template"); err != nil || !found {
			t.Fatalf("%s has no template: %v", key(o), err)
		}
	}
	var out corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"metadata": from["metadata"], "spec": from["spec"]}, &out, true); err != nil {
		t.Fatal(err)
	}
	return out
}

// pods are those that the chart makes in any way.
func pods(t *testing.T, all objects) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for k, o := range all {
		switch o.GetKind() {
		case "Deployment", "Pod":
			out[k] = podTemplate(t, o)
		case "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet":
			t.Errorf("%s: teach this test about its pods", k)
		}
	}
	if len(out) < 2 {
		t.Fatalf("want the operator's and the test's pod among %q", all.keys())
	}
	return out
}

// The API server itself judges: Pod Security is an admission of its own.
func TestPodsPassRestrictedPodSecurity(t *testing.T) {
	all := render(t, chartDir, everything...)
	const ns = "restricted"
	if _, err := api.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	try := func(p corev1.PodTemplateSpec) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: ns}, Spec: p.Spec}
		pod.Spec.PriorityClassName = ""
		_, err := api.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for k, p := range pods(t, all) {
		if err := try(p); err != nil {
			t.Errorf("%s: %v", k, err)
		}
		p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
		if try(p) == nil {
			t.Errorf("%s: nobody objects to escalation; Pod Security is not at work here", k)
		}
	}
}

func TestPodsAreBounded(t *testing.T) {
	for k, p := range pods(t, render(t, chartDir, everything...)) {
		for _, c := range p.Spec.Containers {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has resources %+v, want requests and a memory limit", k, c.Name, c.Resources)
			}
			if !c.Resources.Limits.Cpu().IsZero() {
				t.Errorf("%s: container %s has a limit of CPU, which would delay elections", k, c.Name)
			}
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: container %s can write to its root file system", k, c.Name)
			}
		}
	}
}
