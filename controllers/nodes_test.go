package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A volume is lost with its node only if that node is gone, whatever its host name is: a
// node need not be named as its label kubernetes.io/hostname says.
func TestWhetherAVolumeIsLostWithItsNode(t *testing.T) {
	needsCluster(t)
	r := newTestReconciler(t)
	create := func(o client.Object) {
		t.Helper()
		if err := cluster.api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cluster.api.Delete(t.Context(), o) })
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-7.internal", Labels: map[string]string{corev1.LabelHostname: "ip-10-0-0-7"}}}
	create(node)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "local-of-ip-10-0-0-7"}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"ip-10-0-0-7"}}}}}}}
	create(pv)
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv.Name}}
	on := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node.Name}}
	look := func(when string, gone string, unreachable bool) {
		t.Helper()
		selected := claim.DeepCopy()
		selected.Annotations = map[string]string{annotationSelectedNode: node.Name}
		for known, h := range map[string]func() (home, error){
			"by its pod":            func() (home, error) { return r.homeOf(t.Context(), claim, on) },
			"by its claim":          func() (home, error) { return r.homeOf(t.Context(), selected, nil) },
			"by its host name only": func() (home, error) { return r.homeOf(t.Context(), claim, &corev1.Pod{}) },
		} {
			got, err := h()
			if err != nil {
				t.Fatal(err)
			}
			if got.Unreachable != unreachable || (gone == "") != (got.Gone == "") || !strings.Contains(got.Gone, gone) {
				t.Errorf("%s, found %s: %+v", when, known, got)
			}
		}
	}
	look("well", "", false)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	if err := cluster.api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	look("silent", "", true)
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "lost", Effect: corev1.TaintEffectNoExecute})
	if err := cluster.api.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	look("given up", "out of service", true)
	if err := cluster.api.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	look("deleted", "was deleted", false)
}
