package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Tools that wait for what they have applied, whatever its kind, never take an older state for
// the new one, nor one that is being worked on for the last.
func TestToolsThatWaitForAnyObjectCanWaitForAPartition(t *testing.T) {
	w := newWorld(t, needsBareCluster(t), &fakeClock{at: time.Now()}, nil)
	defer w.forget()
	o := w.newOperator()
	is := func(when string, want status.Status) {
		t.Helper()
		if got := w.kstatus(); got != want {
			t.Errorf("%s: kstatus calls it %s, want %s; Progressing is %s", when, got, want, w.progressing())
		}
	}
	is("before an operator has seen it", status.InProgressStatus)
	_, err := o.look(t.Context(), w.request())
	w.must(err)
	is("after the first look", status.InProgressStatus)
	w.must(w.settle(o, nil, w.serves))
	is("at rest", status.CurrentStatus)

	scaleTo(5)(w)
	is("before the change is seen", status.InProgressStatus)
	_, err = o.look(t.Context(), w.request())
	w.must(err)
	is("while replicas are added", status.InProgressStatus)
	w.must(w.settle(o, nil, w.serves))
	is("with five replicas", status.CurrentStatus)

	w.starts = func(pod *corev1.Pod) bool {
		waits(pod, "ErrImagePull", "not found")
		return false
	}
	w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Image = "example.test/tidemark:none" })
	w.must(w.settle(o, nil, func() string { return w.says(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonImagePull) }))
	is("with an image that does not exist, though it serves", status.FailedStatus)
	w.starts = nil
	w.edit(func(rp *v1alpha1.ReplicatedPartition) { rp.Spec.Image = "" })
	w.must(w.settle(o, nil, w.serves))
	is("with the old image again", status.CurrentStatus)

	w.must(w.api.Delete(t.Context(), w.partition(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
	is("while it is deleted", status.TerminatingStatus)
}
