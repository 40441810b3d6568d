package controllers

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// processEnded tells from the pod alone whether the process that registered as p
// has ended, and how that shows. Where the pod says nothing yet it has not.
func processEnded(p epoch.Replica, pod *corev1.Pod) (string, bool) {
	if p.Session == epoch.NoSession {
		return "", false
	}
	if p.Gone {
		return "its process has ended", true
	}
	if pod == nil {
		return "its pod is gone", true
	}
	if p.PodUID != "" && p.PodUID != string(pod.UID) {
		return "its pod was replaced", true
	}
	if podTerminal(pod) {
		return fmt.Sprintf("its pod is %s", pod.Status.Phase), true
	}
	c := replicaContainer(pod)
	switch {
	case c == nil || c.RestartCount < p.RestartCount:
		return "", false
	// A ready container has registered, so the record's session is its own, whatever the count: after a loss of power a
	// replica may start before kubelet has told the API server how often that was.
	case c.RestartCount > p.RestartCount && c.Ready:
		return "", false
	case c.RestartCount > p.RestartCount:
		return fmt.Sprintf("its container was restarted (%d times)", c.RestartCount), true
	case c.State.Terminated != nil:
		return fmt.Sprintf("its container terminated with exit code %d", c.State.Terminated.ExitCode), true
	case c.State.Waiting != nil && c.LastTerminationState.Terminated != nil:
		return fmt.Sprintf("its container terminated with exit code %d", c.LastTerminationState.Terminated.ExitCode), true
	}
	return "", false
}

// podTerminal reports whether the pod will never run a process again.
func podTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// replicaContainer is the status of the replica's container, nil if there is none.
func replicaContainer(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == containerName {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// running reports whether the pod runs a process and is to go on doing so.
func running(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil || podTerminal(pod) {
		return false
	}
	c := replicaContainer(pod)
	return c != nil && c.State.Running != nil
}

// leaseDuration is how long the leader may be silent: the longer of what the spec
// says and what the leader itself goes by, which may not have seen the new spec.
func (o *Observation) leaseDuration() time.Duration {
	return max(o.Partition.EffectiveLeaseDuration(), o.Record.Heartbeat.Duration)
}

func (o *Observation) leaseExpired() bool {
	return o.Record.Leader != epoch.NoReplica && o.Silence >= o.leaseDuration()
}

// leaderLost says why the leader can no longer be counted on; "" if it can.
func (o *Observation) leaderLost() string {
	p, ok := o.Record.Replica(o.Record.Leader)
	if !ok {
		return ""
	}
	if why, ended := processEnded(p, o.Pods[p.ID]); ended {
		return why
	}
	if o.leaseExpired() {
		return fmt.Sprintf("it has not renewed its lease for %s", o.leaseDuration())
	}
	return ""
}

// tookOver reports whether the leader serves and can be counted on.
func (o *Observation) tookOver() bool {
	r := o.Record
	return r.Leader != epoch.NoReplica && r.Progress != nil && r.Progress.TookOver == r.LeaderEpoch && o.leaderLost() == ""
}

// liveInProgress holds the replicas that the last progress calls live, and its
// writer. It may be of an earlier leader.
func (o *Observation) liveInProgress() []epoch.ReplicaID {
	if o.Record.Progress == nil {
		return nil
	}
	var ids []epoch.ReplicaID
	for _, p := range o.Record.Progress.Replicas {
		if p.Live {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// live holds the replicas that are at work and caught up, as a leader that can be
// counted on says and their pods do not deny.
func (o *Observation) live() []epoch.ReplicaID {
	if !o.tookOver() {
		return nil
	}
	said := append(o.liveInProgress(), o.Record.Leader)
	var ids []epoch.ReplicaID
	for _, p := range o.Record.Replicas {
		_, ended := processEnded(p, o.Pods[p.ID])
		if !ended && p.Session != epoch.NoSession && slices.Contains(said, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// liveMembers holds the live members of the ISR.
func (o *Observation) liveMembers() []epoch.ReplicaID {
	return slices.DeleteFunc(o.live(), func(id epoch.ReplicaID) bool { return !o.Record.InSync(id) })
}

// electable holds the ISR members to choose the next leader from: the best group
// of those that run at all. The rules of package epoch have the last word; a member
// that turns out to be dead costs one more election and nothing else.
func (o *Observation) electable(except epoch.ReplicaID) []epoch.ReplicaID {
	said := o.liveInProgress()
	var groups [4][]epoch.ReplicaID
	for _, p := range o.Record.Replicas {
		pod := o.Pods[p.ID]
		if p.ID == except || p.Session == epoch.NoSession || !o.Record.InSync(p.ID) || !running(pod) {
			continue
		}
		if p.PodUID != "" && p.PodUID != string(pod.UID) {
			continue
		}
		_, ended := processEnded(p, pod)
		switch live := slices.Contains(said, p.ID); {
		case ended:
			// Running again and about to register, or registered by a count that the
			// kubelet had not published yet: better than nobody.
			groups[3] = append(groups[3], p.ID)
		case live && podReady(pod):
			groups[0] = append(groups[0], p.ID)
		case live:
			groups[1] = append(groups[1], p.ID)
		default:
			groups[2] = append(groups[2], p.ID)
		}
	}
	for _, g := range groups {
		if len(g) > 0 {
			return g
		}
	}
	return nil
}
