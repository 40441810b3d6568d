package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// tell names a plan's actions in short.
func tell(p Plan) []string {
	var out []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case CreateRecord:
			out = append(out, "create record")
		case Adopt:
			out = append(out, "adopt "+a.TopicID.String())
		case RemakeRecord:
			out = append(out, fmt.Sprintf("remake record at %d", a.PartitionEpoch))
		case AskReports:
			out = append(out, fmt.Sprintf("ask reports at %d", a.PartitionEpoch))
		case Recover:
			out = append(out, fmt.Sprintf("recover %d", a.PartitionEpoch))
		case Elect:
			out = append(out, fmt.Sprintf("elect %s of %v", a.Reason, a.Live))
		case Switchover:
			out = append(out, fmt.Sprintf("switch over to %d by %s", a.To, a.Reason))
		case Withdraw:
			out = append(out, "withdraw switchover")
		case Assign:
			out = append(out, fmt.Sprintf("assign %v min %d", a.Target, a.MinISR))
		case Apply:
			out = append(out, "apply "+describe(a.Desired))
		case Remove:
			out = append(out, "remove "+describe(a.Object))
		case CreatePod:
			out = append(out, "create pod "+a.ID.String())
		case DeletePod:
			out = append(out, fmt.Sprintf("delete pod %d %s", a.ID, a.Cause))
		case DeleteClaim:
			out = append(out, strings.TrimSuffix(fmt.Sprintf("delete claim %d, %s", a.ID, a.Lost), ", "))
		}
	}
	return out
}

// unplace lets the pod of replica 2 have found no node for so long.
func unplace(o *Observation, seen time.Duration) {
	o.Pods[2].Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	o.Unplaced = map[types.UID]time.Duration{o.Pods[2].UID: seen}
}

// outdate makes the pods of these replicas look like ones of an earlier spec.
func outdate(o *Observation, ids ...epoch.ReplicaID) {
	for _, id := range ids {
		o.Pods[id].Annotations[v1alpha1.AnnotationTemplateHash] = "old"
	}
}

func stuckOnImage(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
}

// restartContainer is a container that ended and runs again, seen only as that: its new
// process has not registered, so it is not ready.
func restartContainer(pod *corev1.Pod) {
	runPod(1)(pod)
	notReady(pod, true)
}

func notReady(pod *corev1.Pod, started bool) {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses[0].Ready = false
	pod.Status.ContainerStatuses[0].Started = ptr.To(started)
}

type planCase struct {
	name   string
	change func(*Observation)
	want   []string
	reason string
	// recheck 0 means that it does not matter.
	recheck time.Duration
}

func runPlanCases(t *testing.T, cases []planCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			if tc.change != nil {
				tc.change(o)
			}
			p := MakePlan(o)
			if got := tell(p); !slices.Equal(got, tc.want) {
				t.Errorf("got actions %q, want %q", got, tc.want)
			}
			if tc.reason != "" && p.Progress.Reason != tc.reason {
				t.Errorf("got progress %+v, want reason %s", p.Progress, tc.reason)
			}
			if tc.recheck != 0 && p.Recheck != tc.recheck {
				t.Errorf("got recheck after %s, want %s", p.Recheck, tc.recheck)
			}
		})
	}
}

func TestPlanForTheRecord(t *testing.T) {
	runPlanCases(t, []planCase{
		{"converged", nil, nil, v1alpha1.ReasonComplete, 0},
		{"being deleted", func(o *Observation) {
			o.Partition.DeletionTimestamp = &metav1.Time{}
			o.RecordState = RecordMissing
		}, nil, "", 0},
		{"new", func(o *Observation) { o.RecordState, o.Partition.Status.TopicID = RecordMissing, "" }, []string{"create record"}, v1alpha1.ReasonStarting, 0},
		{"made and not shown yet: no pod before the status", func(o *Observation) {
			o.Partition.Status.TopicID = ""
			clear(o.Pods)
		}, nil, v1alpha1.ReasonStarting, 0},
		{"missing though once made", func(o *Observation) {
			o.RecordState = RecordMissing
			clear(o.Pods)
		}, nil, v1alpha1.ReasonRecordMissing, recordRecheck},
		{"foreign", func(o *Observation) { o.RecordState = RecordForeign }, nil, v1alpha1.ReasonRecordForeign, foreignRecheck},
		{"edited by hand", func(o *Observation) { o.RecordState = RecordInvalid }, nil, v1alpha1.ReasonRecordInvalid, recordRecheck},
		{"frozen: nothing destructive, no election", func(o *Observation) {
			o.Record.Recovery = &epoch.Recovery{}
			killContainer(o.Pods[0])
			outdate(o, 1, 2)
			o.Partition.Spec.Replicas = 2
		}, nil, v1alpha1.ReasonRecoveryRequired, 0},
	})
}

func TestPlanElections(t *testing.T) {
	vacate := func(o *Observation, e epoch.LeaderEpoch) {
		o.Record.Leader, o.Record.LeaderSession, o.Record.LeaderEpoch, o.Record.Progress = epoch.NoReplica, epoch.NoSession, e, nil
	}
	runPlanCases(t, []planCase{
		{"dead process, lease far from over", func(o *Observation) { killContainer(o.Pods[0]) }, []string{"elect ProcessDied of [1 2]"}, "", 0},
		{"dead process and nobody to follow", func(o *Observation) {
			killContainer(o.Pods[0])
			o.Record.ISR = []epoch.ReplicaID{0}
		}, nil, "", 0},
		{"silent for less than the lease", func(o *Observation) { o.Silence = 7 * time.Second }, nil, "", 3 * time.Second},
		{"silent for the lease", func(o *Observation) { o.Silence = 10 * time.Second }, []string{"elect LeaseExpired of [1 2]"}, "", 0},
		{"on its way out for a moment", func(o *Observation) {
			o.Pods[0].DeletionTimestamp = &metav1.Time{}
			o.Deleting[o.Pods[0].UID] = 500 * time.Millisecond
		}, nil, "", 1500 * time.Millisecond},
		{"on its way out and still leading", func(o *Observation) {
			o.Pods[0].DeletionTimestamp = &metav1.Time{}
			o.Deleting[o.Pods[0].UID] = handOverWait
		}, []string{"elect PodTerminating of [1 2]"}, "", 0},
		{"it asks to be replaced, since nobody fetches", func(o *Observation) {
			o.Record.Switchover = &epoch.Switchover{Session: o.Record.LeaderSession, Reason: epoch.SwitchoverIsolated}
		}, []string{"elect LeaderStuck of [1 2]"}, "", 0},
		{"it asks to be replaced, and nobody else is at work", func(o *Observation) {
			o.Record.Switchover = &epoch.Switchover{Session: o.Record.LeaderSession, Reason: epoch.SwitchoverIsolated}
			killContainer(o.Pods[1])
			killContainer(o.Pods[2])
		}, nil, "", 0},
		{"an earlier session had asked to be replaced", func(o *Observation) {
			o.Record.Switchover = &epoch.Switchover{Session: o.Record.LeaderSession - 1, Reason: epoch.SwitchoverIsolated}
		}, nil, "", 0},
		{"a switchover for another reason is the leader's own business", func(o *Observation) {
			o.Record.Switchover = &epoch.Switchover{Session: o.Record.LeaderSession, Reason: "drain"}
		}, nil, "", 0},
		{"new, one of three registered", func(o *Observation) {
			vacate(o, 0)
			o.Record.Replicas[1].Session, o.Record.Replicas[2].Session = 0, 0
			o.FirstRegistered = 2 * time.Second
		}, nil, "", 3 * time.Second},
		{"new, one of three registered, waited for", func(o *Observation) {
			vacate(o, 0)
			o.Record.Replicas[1].Session, o.Record.Replicas[2].Session = 0, 0
			o.FirstRegistered = firstLeaderWait
		}, []string{"elect FirstLeader of [0]"}, "", 0},
		{"new, all registered", func(o *Observation) { vacate(o, 0) }, []string{"elect FirstLeader of [0 1 2]"}, "", 0},
		{"new, none registered", func(o *Observation) {
			vacate(o, 0)
			for i := range o.Record.Replicas {
				o.Record.Replicas[i].Session = 0
			}
		}, nil, "", 0},
		{"vacant later", func(o *Observation) { vacate(o, 4) }, []string{"elect ProcessDied of [0 1 2]"}, "", 0},
		{"vacant with an empty ISR", func(o *Observation) {
			vacate(o, 4)
			o.Record.ISR = nil
		}, nil, "", 0},
		{"vacant with an empty ISR, unclean allowed", func(o *Observation) {
			vacate(o, 4)
			o.Record.ISR = nil
			o.Partition.Spec.LeaderElection.Unclean = v1alpha1.UncleanLastKnownLeader
		}, []string{"elect LastKnownLeader of [0 1 2]"}, "", 0},
	})
}

func TestPlanSwitchovers(t *testing.T) {
	promote := func(text string) func(*Observation) {
		return func(o *Observation) { o.Partition.Annotations = map[string]string{v1alpha1.AnnotationPromote: text} }
	}
	prefer := func(id int32, fit time.Duration) func(*Observation) {
		return func(o *Observation) {
			o.Partition.Spec.LeaderElection.PreferredLeader = ptr.To(id)
			o.PreferredFit = fit
		}
	}
	asked := func(reason string, to epoch.ReplicaID) func(*Observation) {
		return func(o *Observation) {
			o.Record.Switchover = &epoch.Switchover{Session: o.Record.LeaderSession, Reason: reason, To: &to}
		}
	}
	all := func(changes ...func(*Observation)) func(*Observation) {
		return func(o *Observation) {
			for _, c := range changes {
				c(o)
			}
		}
	}
	refused, switching, complete := v1alpha1.ReasonSwitchoverRefused, v1alpha1.ReasonSwitchingOver, v1alpha1.ReasonComplete
	runPlanCases(t, []planCase{
		{"asked for", promote("1/2"), []string{"switch over to 2 by Promote"}, switching, 0},
		{"asked for and under way", all(promote("1/2"), asked(switchoverPromote, 2)), nil, switching, 0},
		{"asked for in an earlier epoch", promote("0/2"), nil, complete, 0},
		{"who is asked for leads", promote("1/0"), nil, complete, 0},
		{"the annotation cannot be read", promote("2"), nil, v1alpha1.ReasonRequestInvalid, 0},
		{"of no replica", promote("1/7"), nil, refused, 0},
		{"of one that is not in sync", all(promote("1/2"), func(o *Observation) { o.Record.ISR = []epoch.ReplicaID{0, 1} }), nil, refused, 0},
		{"of one that falls behind meanwhile", all(promote("1/2"), asked(switchoverPromote, 2), func(o *Observation) { o.Record.ISR = []epoch.ReplicaID{0, 1} }),
			[]string{"withdraw switchover"}, refused, 0},
		{"asked for another one meanwhile", all(promote("1/1"), asked(switchoverPromote, 2)), []string{"withdraw switchover"}, "", 0},
		{"not asked for any more", asked(switchoverPromote, 2), []string{"withdraw switchover"}, "", 0},
		{"the leader's own affair", asked("drain", 2), nil, complete, 0},
		{"no leader", all(promote("1/2"), func(o *Observation) { killContainer(o.Pods[0]) }), []string{"elect ProcessDied of [1 2]"}, "", 0},
		{"preferred, and fit for long", prefer(1, preferredWait), []string{"switch over to 1 by PreferredLeader"}, switching, 0},
		{"preferred, and fit for a moment", prefer(1, 4*time.Second), nil, complete, 6 * time.Second},
		{"preferred, and leads", prefer(0, time.Hour), nil, complete, 0},
		{"preferred, and not ready", all(prefer(1, 0), func(o *Observation) { notReady(o.Pods[1], true) }), nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"preferred, and to be replaced first", all(prefer(1, 0), func(o *Observation) { outdate(o, 0, 1) }), []string{"delete pod 1 Outdated"}, "", 0},
		{"preferred, and its volume is full", all(prefer(1, 0), func(o *Observation) { o.Record.Progress.Replicas[1].Full = true }), nil, complete, 0},
		{"preferred, under way, and falls behind", all(prefer(1, 0), asked(switchoverPreferred, 1), func(o *Observation) { o.Record.Progress.Replicas[1].Live = false }),
			[]string{"withdraw switchover"}, "", 0},
		{"asked for against the spec", all(promote("1/2"), prefer(0, time.Hour)), nil, refused, 0},
		{"asked for as the spec prefers", all(promote("1/1"), prefer(1, 0)), []string{"switch over to 1 by Promote"}, switching, 0},
	})
}

func TestPlanPause(t *testing.T) {
	pause := func(text string, more func(*Observation)) func(*Observation) {
		return func(o *Observation) {
			o.Partition.Annotations = map[string]string{v1alpha1.AnnotationPaused: text}
			if more != nil {
				more(o)
			}
		}
	}
	paused := v1alpha1.ReasonPaused
	runPlanCases(t, []planCase{
		{"nothing to do", pause("true", nil), nil, paused, 0},
		{"not any more", pause("false", nil), nil, v1alpha1.ReasonComplete, 0},
		{"a word that is neither", pause("yes", func(o *Observation) { delete(o.Pods, 2) }), nil, v1alpha1.ReasonRequestInvalid, 0},
		{"a pod is missing", pause("true", func(o *Observation) { delete(o.Pods, 2) }), nil, paused, 0},
		{"pods are outdated", pause("true", func(o *Observation) { outdate(o, 0, 1, 2) }), nil, paused, 0},
		{"more replicas are wanted", pause("true", func(o *Observation) { o.Partition.Spec.Replicas = 5 }), nil, paused, 0},
		{"suspended as well", pause("true", func(o *Observation) { o.Partition.Spec.Suspend = true }), nil, paused, 0},
		{"a new partition", pause("true", func(o *Observation) { o.RecordState, o.Partition.Status.TopicID = RecordMissing, "" }), nil, paused, 0},
		{"the leader dies", pause("true", func(o *Observation) { killContainer(o.Pods[0]) }), []string{"elect ProcessDied of [1 2]"}, paused, 0},
		{"another leader is asked for", pause("true", func(o *Observation) { o.Partition.Annotations[v1alpha1.AnnotationPromote] = "1/2" }),
			[]string{"switch over to 2 by Promote"}, "", 0},
	})
}

func TestPlanSuspension(t *testing.T) {
	ending := func(since time.Duration, ids ...epoch.ReplicaID) func(*Observation) {
		return func(o *Observation) {
			for _, id := range ids {
				o.Pods[id].DeletionTimestamp = &metav1.Time{}
				o.Deleting[o.Pods[id].UID] = since
			}
		}
	}
	suspend := func(more ...func(*Observation)) func(*Observation) {
		return func(o *Observation) {
			o.Partition.Spec.Suspend = true
			for _, m := range more {
				m(o)
			}
		}
	}
	runPlanCases(t, []planCase{
		{"followers end first", suspend(), []string{"delete pod 1 Suspended", "delete pod 2 Suspended"}, v1alpha1.ReasonSuspending, 0},
		{"the leader waits for them", suspend(ending(time.Second, 1, 2)), nil, v1alpha1.ReasonSuspending, 0},
		{"but not for a pod that cannot end", suspend(ending(suspendPatience, 1), func(o *Observation) { delete(o.Pods, 2) }),
			[]string{"delete pod 0 Suspended"}, v1alpha1.ReasonSuspending, 0},
		{"the leader ends last", suspend(func(o *Observation) { delete(o.Pods, 1); delete(o.Pods, 2) }), []string{"delete pod 0 Suspended"}, v1alpha1.ReasonSuspending, 0},
		{"all have ended, and none comes back", suspend(func(o *Observation) { clear(o.Pods) }), nil, v1alpha1.ReasonSuspended, 0},
		{"replicas are not changed meanwhile", suspend(func(o *Observation) { clear(o.Pods); o.Partition.Spec.Replicas = 5 }), nil, v1alpha1.ReasonSuspended, 0},
		{"not what still has to report", suspend(func(o *Observation) { o.Record.Recovery = &epoch.Recovery{} }), nil, v1alpha1.ReasonRecoveryRequired, 0},
	})
}

func TestPlanReplacements(t *testing.T) {
	lost := func(h home, more ...func(*Observation)) func(*Observation) {
		return func(o *Observation) {
			h.Node = "node2"
			o.Homes = map[epoch.ReplicaID]home{2: h}
			o.Pods[2].Spec.NodeName = "node2"
			notReady(o.Pods[2], true)
			o.Record.ISR = []epoch.ReplicaID{0, 1}
			o.Record.Progress.Replicas[2].Live = false
			for _, m := range more {
				m(o)
			}
		}
	}
	gone, silent := home{Gone: "node node2 was deleted"}, home{Unreachable: true, Silence: 90 * time.Second}
	after := func(seconds int32) func(*Observation) {
		return func(o *Observation) { o.Partition.Spec.Replacement.AfterSeconds = &seconds }
	}
	both := []string{"delete pod 2 Lost", "delete claim 2, node node2 was deleted"}
	replacing, waiting := v1alpha1.ReasonReplacing, v1alpha1.ReasonWaitingForReplicas
	runPlanCases(t, []planCase{
		{"its node was deleted", lost(gone), both, replacing, 0},
		{"and its pod, too", lost(gone, func(o *Observation) { delete(o.Pods, 2) }), []string{"delete claim 2, node node2 was deleted", "create pod 2"}, replacing, 0},
		{"its next pod finds no node", lost(gone, func(o *Observation) { o.Pods[2].Spec.NodeName = "" }), []string{"delete claim 2, node node2 was deleted"}, replacing, 0},
		{"the claim is going", lost(gone, func(o *Observation) { o.Claims[2].DeletionTimestamp = &metav1.Time{} }), []string{"delete pod 2 Lost"}, replacing, 0},
		{"its copy may be needed", lost(gone, func(o *Observation) { o.Record.ISR = []epoch.ReplicaID{0, 1, 2} }), nil, waiting, 0},
		{"another is not live", lost(gone, func(o *Observation) { o.Record.Progress.Replicas[1].Live = false }), nil, waiting, 0},
		{"nobody leads", lost(gone, func(o *Observation) { o.Record.Progress.TookOver = 0 }), nil, waiting, 0},
		{"what it knows may be needed", lost(gone, func(o *Observation) { o.Record.Recovery = &epoch.Recovery{} }), nil, v1alpha1.ReasonRecoveryRequired, 0},
		{"unreachable, and waited for without end", lost(silent), nil, waiting, 0},
		{"unreachable for long enough", lost(silent, after(90)), []string{"delete pod 2 Lost", "delete claim 2, node node2 has been unreachable for 1m30s"}, replacing, 0},
		{"unreachable, not for long enough", lost(silent, after(91)), nil, waiting, time.Second},
		{"paused", lost(gone, func(o *Observation) { o.Partition.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} }), nil, v1alpha1.ReasonPaused, 0},
		{"its volume can be attached elsewhere", lost(gone, func(o *Observation) { o.Homes = nil }), nil, waiting, 0},
	})
}

// Only a volume that one node alone can mount is lost with it.
func TestOnlyNodeOfAVolume(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
	}
	for _, tc := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		{"a local volume", []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "node1")}, "node1"},
		{"of a zone", []corev1.NodeSelectorTerm{in(corev1.LabelTopologyZone, "a")}, ""},
		{"of either of two nodes", []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "node1", "node2")}, ""},
		{"of either of two terms", []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "node1"), in(corev1.LabelHostname, "node2")}, ""},
		{"of any node", nil, ""},
	} {
		pv := &corev1.PersistentVolume{}
		if tc.terms != nil {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: tc.terms}}
		}
		if _, got := onlyNode(pv); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPlanPods(t *testing.T) {
	runPlanCases(t, []planCase{
		{"one missing", func(o *Observation) { delete(o.Pods, 2) }, []string{"create pod 2"}, v1alpha1.ReasonWaitingForReplicas, 0},
		{"one missing while a name is taken", func(o *Observation) {
			delete(o.Pods, 2)
			o.Foreign = []string{"ServiceAccount orders-replica"}
		}, nil, v1alpha1.ReasonNameConflict, 0},
		{"one ended", func(o *Observation) { o.Pods[2].Status.Phase = corev1.PodSucceeded }, []string{"delete pod 2 Ended"}, "", 0},
		{"one ending", func(o *Observation) { o.Pods[2].DeletionTimestamp = &metav1.Time{} }, nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"one crash-looping", func(o *Observation) {
			killContainer(o.Pods[2])
			c := &o.Pods[2].Status.ContainerStatuses[0]
			c.LastTerminationState, c.State = c.State, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}, nil, v1alpha1.ReasonCrashLooping, 0},
		{"one without a node for a moment, as every new one is", func(o *Observation) { unplace(o, 9*time.Second) }, nil, v1alpha1.ReasonWaitingForReplicas, time.Second},
		{"one unschedulable", func(o *Observation) { unplace(o, placeWait) }, nil, v1alpha1.ReasonUnschedulable, 0},
		{"one unschedulable, and this operator is new", func(o *Observation) {
			unplace(o, 0)
			o.Partition.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnschedulable}}
		}, nil, v1alpha1.ReasonUnschedulable, 0},
		{"surplus pod", func(o *Observation) { o.Pods[3] = o.Pods[2].DeepCopy() }, []string{"delete pod 3 Removed"}, "", 0},
	})
}

func TestPlanRolls(t *testing.T) {
	runPlanCases(t, []planCase{
		{"all outdated: the leader is not the first", func(o *Observation) { outdate(o, 0, 1, 2) }, []string{"delete pod 1 Outdated"}, v1alpha1.ReasonRollingOut, 0},
		{"leader and another", func(o *Observation) { outdate(o, 0, 2) }, []string{"delete pod 2 Outdated"}, "", 0},
		{"only the leader is left", func(o *Observation) { outdate(o, 0) }, []string{"delete pod 0 Outdated"}, "", 0},
		{"another is not in sync", func(o *Observation) {
			outdate(o, 0, 1)
			o.Record.Progress.Replicas[2].Live = false
		}, nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"another is on its way", func(o *Observation) {
			outdate(o, 0, 1)
			delete(o.Pods, 2)
		}, []string{"create pod 2"}, "", 0},
		{"the new leader has not taken over", func(o *Observation) {
			outdate(o, 1)
			o.Record.LeaderEpoch = 2
		}, nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"the first new one does not start", func(o *Observation) {
			outdate(o, 0, 2)
			stuckOnImage(o.Pods[1])
		}, nil, v1alpha1.ReasonImagePull, 0},
		{"the broken one is outdated: taken first, back to good", func(o *Observation) {
			outdate(o, 1)
			stuckOnImage(o.Pods[1])
		}, []string{"delete pod 1 Outdated"}, "", 0},
		{"all broken and outdated: nothing to wait for", func(o *Observation) {
			outdate(o, 0, 1, 2)
			for id := range epoch.ReplicaID(3) {
				stuckOnImage(o.Pods[id])
				o.Record.Replicas[id].Session = 0
			}
			o.Record.Leader, o.Record.LeaderEpoch, o.Record.Progress = epoch.NoReplica, 0, nil
		}, []string{"delete pod 0 Outdated"}, "", 0},
		{"an outdated one recovers its log", func(o *Observation) {
			outdate(o, 1)
			notReady(o.Pods[1], false)
		}, nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"an outdated one has started and is not ready", func(o *Observation) {
			outdate(o, 1, 2)
			notReady(o.Pods[2], true)
		}, []string{"delete pod 2 Outdated"}, "", 0},
		{"amid a reassignment", func(o *Observation) {
			outdate(o, 1)
			o.Record.Replicas[2].Adding = true
			o.Record.ISR = []epoch.ReplicaID{0, 1}
			o.Children, o.Desired.Children = nil, nil
		}, nil, v1alpha1.ReasonReassigning, 0},
	})
}

func TestPlanAssignments(t *testing.T) {
	forget := func(o *Observation) { o.Children, o.Desired.Children = nil, nil }
	runPlanCases(t, []planCase{
		{"scale up", func(o *Observation) { o.Partition.Spec.Replicas = 5 }, []string{"assign [0 1 2 3 4] min 2"}, v1alpha1.ReasonReassigning, 0},
		{"scale down marks first", func(o *Observation) { o.Partition.Spec.Replicas = 2 }, []string{"assign [0 1] min 2"}, v1alpha1.ReasonReassigning, 0},
		{"marked and enough live", func(o *Observation) {
			o.Partition.Spec.Replicas, o.Record.Replicas[2].Removing = 2, true
			forget(o)
		}, []string{"assign [0 1] min 2"}, "", 0},
		{"marked and too few live", func(o *Observation) {
			o.Partition.Spec.Replicas, o.Record.Replicas[2].Removing = 2, true
			o.Record.Progress.Replicas[1].Live = false
			forget(o)
		}, nil, v1alpha1.ReasonWaitingForReplicas, 0},
		{"min ISR", func(o *Observation) { o.Partition.Spec.MinInSyncReplicas = ptr.To[int32](3) }, []string{"assign [0 1 2] min 3"}, "", 0},
	})
}

// A volume is marked as released before its replica leaves the record, since after
// that its story would be unknown.
func TestClaimIsReleasedBeforeItsReplicaIsDropped(t *testing.T) {
	o := world()
	o.Partition.Spec.Replicas = 2
	o.Partition.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1alpha1.DeleteVolume
	o.Record.Replicas[2].Removing = true
	o.render()
	want := []string{"apply PersistentVolumeClaim data-orders-2", "assign [0 1] min 2"}
	if got := tell(MakePlan(o)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClaimPolicies(t *testing.T) {
	removed := func(o *Observation) {
		o.Partition.Spec.Replicas = 2
		o.Partition.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1alpha1.DeleteVolume
		o.Record.Replicas, o.Record.ISR = o.Record.Replicas[:2], o.Record.ISR[:2]
		o.Claims[2] = o.Claims[2].DeepCopy()
		o.Claims[2].Annotations[v1alpha1.AnnotationReleased] = o.Record.TopicID.String()
		delete(o.Pods, 2)
	}
	for _, tc := range []struct {
		name   string
		change func(*Observation)
		want   bool
	}{
		{"released, gone and asked for", nil, true},
		{"retained", func(o *Observation) {
			o.Partition.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1alpha1.RetainVolume
		}, false},
		{"frozen", func(o *Observation) { o.Record.Recovery = &epoch.Recovery{} }, false},
		{"record missing", func(o *Observation) { o.RecordState = RecordMissing }, false},
		{"wanted again", func(o *Observation) { o.Partition.Spec.Replicas = 3 }, false},
		{"pod still there", func(o *Observation) { o.Pods[2] = &corev1.Pod{} }, false},
		{"not released", func(o *Observation) { delete(o.Claims[2].Annotations, v1alpha1.AnnotationReleased) }, false},
		{"released by an earlier partition of the name", func(o *Observation) { o.Claims[2].Annotations[v1alpha1.AnnotationReleased] = "other" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := world()
			removed(o)
			if tc.change != nil {
				tc.change(o)
			}
			if got := claimPolicies.judge(claimCase{Observation: o, ID: 2}); got.Allowed != tc.want {
				t.Errorf("got %+v, want allowed %t", got, tc.want)
			}
		})
	}
}
