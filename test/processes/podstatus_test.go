package processes

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// probe asks for readiness until ctx ends.
func (c *container) probe(ctx context.Context) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		resp, err := client.Get("http://" + c.ip + ":8080/readyz")
		ready := err == nil && resp.StatusCode == http.StatusOK
		if err == nil {
			resp.Body.Close()
		}
		c.mu.Lock()
		changed := ready != c.ready && c.process != nil
		if changed {
			c.ready = ready
		}
		c.mu.Unlock()
		if changed {
			c.wake()
		}
	}
}

// report tells the API server how the container is, until it has heard the newest, and until ctx ends.
func (c *container) report(ctx context.Context) {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	told := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			told = false
		case <-ticker.C:
		}
		if !told {
			told = c.tell(ctx)
		}
	}
}

// tell writes the pod's status as a kubelet does, and reports whether that is done.
func (c *container) tell(ctx context.Context) bool {
	c.mu.Lock()
	dark := c.dark
	c.mu.Unlock()
	if dark {
		return false
	}
	pods := c.kubelet.client.CoreV1().Pods(c.kubelet.namespace)
	fresh, err := pods.Get(ctx, c.name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	if fresh.UID != c.pod.UID {
		return true
	}
	fresh.Status = c.status(fresh.Status)
	_, err = pods.UpdateStatus(ctx, fresh, metav1.UpdateOptions{})
	return err == nil || apierrors.IsNotFound(err)
}

// status is the pod's, as it is now.
func (c *container) status(s corev1.PodStatus) corev1.PodStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	ready := c.ready && c.process != nil
	s.Phase = corev1.PodRunning
	s.PodIP, s.PodIPs = c.ip, []corev1.PodIP{{IP: c.ip}}
	condition := func(kind corev1.PodConditionType, yes bool) corev1.PodCondition {
		is := corev1.ConditionFalse
		if yes {
			is = corev1.ConditionTrue
		}
		return corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: metav1.Now()}
	}
	s.Conditions = []corev1.PodCondition{
		condition(corev1.PodReady, ready), condition(corev1.ContainersReady, ready), condition(corev1.PodInitialized, true), condition(corev1.PodScheduled, true),
	}
	spec := c.pod.Spec.Containers[0]
	cs := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Ready: ready, RestartCount: max(0, c.starts-1), Started: ptr.To(c.process != nil)}
	if c.exit != nil {
		cs.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: *c.exit}
	}
	switch {
	case c.process != nil:
		cs.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
	case c.exit != nil:
		cs.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: *c.exit}
	default:
		cs.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	s.ContainerStatuses = []corev1.ContainerStatus{cs}
	return s
}
