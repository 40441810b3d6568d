package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// trouble is what keeps a pod from running, as the kubelet or the scheduler says;
// the zero value is none.
type trouble struct{ Reason, Message string }

var imageReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}

// podTrouble reads what is wrong with a pod from its status.
func podTrouble(pod *corev1.Pod) trouble {
	if pod == nil || podReady(pod) {
		return trouble{}
	}
	if why, so := unscheduled(pod); so {
		return trouble{v1alpha1.ReasonUnschedulable, fmt.Sprintf("the pod %s finds no node: %s", pod.Name, why)}
	}
	c := replicaContainer(pod)
	if c == nil || c.State.Waiting == nil {
		return trouble{}
	}
	w := c.State.Waiting
	switch {
	case slices.Contains(imageReasons, w.Reason):
		return trouble{v1alpha1.ReasonImagePull, fmt.Sprintf("the pod %s cannot get the image %s: %s%s%s", pod.Name, c.Image, w.Reason, said(w.Message), tellPullSecrets(pod))}
	case w.Reason == "CrashLoopBackOff" && c.LastTerminationState.Terminated != nil:
		return trouble{v1alpha1.ReasonCrashLooping, fmt.Sprintf("the container of pod %s keeps exiting, last with code %d; see its log", pod.Name, c.LastTerminationState.Terminated.ExitCode)}
	case w.Reason == "CrashLoopBackOff" || w.Reason == "CreateContainerConfigError" || w.Reason == "CreateContainerError" || w.Reason == "RunContainerError":
		return trouble{v1alpha1.ReasonCrashLooping, fmt.Sprintf("the container of pod %s does not start: %s%s", pod.Name, w.Reason, said(w.Message))}
	}
	return trouble{}
}

// said is what the kubelet adds to a reason, which has no length that can be relied on.
func said(message string) string {
	if message == "" {
		return ""
	}
	return ": " + truncate(message, 512)
}

// tellPullSecrets names the Secrets that a pod's image is pulled with: one that is not there
// shows as nothing but a registry that refuses.
func tellPullSecrets(pod *corev1.Pod) string {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return "; correct spec.image, or the registry"
	}
	var names []string
	for _, s := range pod.Spec.ImagePullSecrets {
		names = append(names, s.Name)
	}
	return fmt.Sprintf("; it is pulled with the Secrets %s of namespace %s: see that they are there and valid, or correct spec.image", strings.Join(names, ", "), pod.Namespace)
}

// unscheduled is what the scheduler says against a pod, if it does.
func unscheduled(pod *corev1.Pod) (why string, so bool) {
	for _, c := range pod.Status.Conditions {
		// SchedulerError is, among others, a claim of a storage class that does not exist.
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == "SchedulerError") {
			return c.Message, true
		}
	}
	return "", false
}

// placeWait is how long a pod may be without a node before that counts as trouble: every new
// one is, until its volume is there.
const placeWait = 10 * time.Second

// planTrouble notes the first pod that cannot run.
func planTrouble(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		t := podTrouble(o.Pods[q.ID])
		if t.Reason == v1alpha1.ReasonUnschedulable {
			said, _ := unscheduled(o.Pods[q.ID])
			if why := o.volumePending(q.ID, said); why != "" {
				t = trouble{v1alpha1.ReasonVolumePending, why}
			}
			if seen := o.Unplaced[o.Pods[q.ID].UID]; seen < placeWait && !o.told(t.Reason) {
				p.recheck(placeWait - seen)
				continue
			}
		}
		if t.Reason != "" {
			p.note(metav1.ConditionFalse, t.Reason, "%s", t.Message)
		}
	}
}

// told reports that Progressing says so already, as after an operator was started anew.
func (o *Observation) told(reason string) bool {
	c := meta.FindStatusCondition(o.Partition.Status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Reason == reason
}
