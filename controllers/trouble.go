package controllers

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return trouble{v1alpha1.ReasonUnschedulable, fmt.Sprintf("the pod %s finds no node: %s", pod.Name, c.Message)}
		}
	}
	c := replicaContainer(pod)
	if c == nil || c.State.Waiting == nil {
		return trouble{}
	}
	w := c.State.Waiting
	switch {
	case slices.Contains(imageReasons, w.Reason):
		return trouble{v1alpha1.ReasonImagePull, fmt.Sprintf("the pod %s cannot get the image %s: %s", pod.Name, c.Image, w.Reason)}
	case w.Reason == "CrashLoopBackOff" && c.LastTerminationState.Terminated != nil:
		return trouble{v1alpha1.ReasonCrashLooping, fmt.Sprintf("the container of pod %s keeps exiting, last with code %d; see its log", pod.Name, c.LastTerminationState.Terminated.ExitCode)}
	case w.Reason == "CrashLoopBackOff" || w.Reason == "CreateContainerConfigError" || w.Reason == "CreateContainerError" || w.Reason == "RunContainerError":
		return trouble{v1alpha1.ReasonCrashLooping, fmt.Sprintf("the container of pod %s does not start: %s", pod.Name, w.Reason)}
	}
	return trouble{}
}

// planTrouble notes the first pod that cannot run.
func planTrouble(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		if t := podTrouble(o.Pods[q.ID]); t.Reason != "" {
			p.note(metav1.ConditionFalse, t.Reason, "%s", t.Message)
		}
	}
}
