package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// project makes the status from the record, the progress that the leader reports,
// and the plan. It starts from the old status only for what is kept while the
// record cannot be read, and for the transition times of conditions.
func project(o *Observation, progress Progress) v1alpha1.ReplicatedPartitionStatus {
	rp := o.Partition
	s := *rp.Status.DeepCopy()
	s.ObservedGeneration = rp.Generation
	s.Topic = rp.EffectiveTopic()
	s.Selector = labels.SelectorFromSet(podSelector(rp)).String()
	if o.RecordState == RecordPresent {
		projectRecord(o, &s)
		projectProgress(o, &s)
		s.Listeners = o.viewListeners().Listeners
	}
	setConditions(o, &s, progress)
	return s
}

func projectRecord(o *Observation, s *v1alpha1.ReplicatedPartitionStatus) {
	r, rp := o.Record, o.Partition
	s.TopicID = r.TopicID.String()
	s.Leader = ""
	if r.Leader != epoch.NoReplica {
		s.Leader = rp.ReplicaName(int32(r.Leader))
	}
	s.LeaderEpoch, s.PartitionEpoch = int32(r.LeaderEpoch), int64(r.PartitionEpoch)
	s.MinInSyncReplicas = int32(r.MinISR)
	s.LastElection = string(r.ElectionReason)
	s.CurrentReplicas = int32(len(r.Replicas))
	s.ISR = nil
	for _, id := range r.ISR {
		s.ISR = append(s.ISR, int32(id))
	}
	s.UncleanElection = nil
	if u := r.UncleanElection; u != nil {
		s.UncleanElection = &v1alpha1.UncleanElectionStatus{
			LeaderEpoch: int32(u.LeaderEpoch), Leader: rp.ReplicaName(int32(u.Leader)), HighWatermark: offset(u.HighWatermark),
		}
		if u.LogEndOffset != nil {
			s.UncleanElection.LogEndOffset = offset(*u.LogEndOffset)
		}
		if from, to, known := u.Lost(); known {
			lost := int64(to - from)
			s.UncleanElection.LostRecords = &lost
		}
	}
	s.Replicas = projectReplicas(o)
	s.StorageCapacity = o.capacity()
}

// projectProgress shows the partition's offsets. While nothing is reported, as just
// after an unclean election, the old ones would be a lie.
func projectProgress(o *Observation, s *v1alpha1.ReplicatedPartitionStatus) {
	s.Flush = o.Partition.EffectiveFlush()
	s.HighWatermark, s.LogStartOffset, s.LogEndOffset = nil, nil, nil
	p := o.Record.Progress
	if p == nil {
		return
	}
	if p.FlushEveryBatch {
		s.Flush = v1alpha1.FlushEveryBatch
	}
	s.HighWatermark, s.LogStartOffset = offset(p.HighWatermark), offset(p.LogStartOffset)
	if lead, ok := progressOf(p, o.Record.Leader); ok {
		s.LogEndOffset = offset(lead.LogEndOffset)
	}
}

func progressOf(p *epoch.Progress, id epoch.ReplicaID) (epoch.ReplicaProgress, bool) {
	if p == nil {
		return epoch.ReplicaProgress{}, false
	}
	for _, q := range p.Replicas {
		if q.ID == id {
			return q, true
		}
	}
	return epoch.ReplicaProgress{}, false
}

func projectReplicas(o *Observation) []v1alpha1.ReplicaStatus {
	live := o.liveMembers()
	leader, haveLeader := progressOf(o.Record.Progress, o.Record.Leader)
	var out []v1alpha1.ReplicaStatus
	for _, q := range o.Record.Replicas {
		s := v1alpha1.ReplicaStatus{
			ID: int32(q.ID), Name: o.Partition.ReplicaName(int32(q.ID)), Role: o.role(q), InSync: slices.Contains(live, q.ID),
		}
		if !q.DirectoryID.IsZero() {
			s.DirectoryID = q.DirectoryID.String()
		}
		if pod := o.Pods[q.ID]; pod != nil {
			s.Node = pod.Spec.NodeName
		}
		if p, ok := progressOf(o.Record.Progress, q.ID); ok {
			s.LogEndOffset, s.HighWatermark = offset(p.LogEndOffset), offset(p.HighWatermark)
			s.Message = tellTrouble(p.Trouble)
			if p.BytesBehind > 0 && !o.Record.InSync(q.ID) {
				s.BytesBehind = &p.BytesBehind
			}
			if p.LeaderEpoch != epoch.NoEpoch {
				e := int32(p.LeaderEpoch)
				s.LeaderEpoch = &e
			}
			if haveLeader && leader.LogEndOffset != epoch.NoOffset && p.LogEndOffset != epoch.NoOffset {
				lag := max(0, int64(leader.LogEndOffset-p.LogEndOffset))
				s.Lag = &lag
			}
		}
		out = append(out, s)
	}
	return out
}

func tellTrouble(t epoch.Trouble) string {
	var all []string
	if t.Damaged {
		all = append(all, "the log is damaged")
	}
	if t.Full {
		all = append(all, "the volume is full")
	}
	if t.Deaf {
		all = append(all, "a listener for clients outside of the cluster is not open, see its log")
	}
	return strings.Join(all, " and ")
}

func (o *Observation) role(q epoch.Replica) v1alpha1.ReplicaRole {
	_, ended := processEnded(q, o.Pods[q.ID])
	switch {
	case q.ID == o.Record.Leader && o.leaderLost() == "":
		return v1alpha1.RoleLeader
	case q.Session == epoch.NoSession || ended || q.ID == o.Record.Leader:
		return v1alpha1.RoleOffline
	case q.Removing:
		return v1alpha1.RoleLeaving
	case q.Adding:
		return v1alpha1.RoleJoining
	}
	return v1alpha1.RoleFollower
}

// tellReplicas is the message of the InSync condition: the whole story in a line.
func tellReplicas(o *Observation, replicas []v1alpha1.ReplicaStatus) string {
	if len(replicas) == 0 {
		return "no replica is assigned"
	}
	parts := make([]string, 0, len(replicas))
	for _, s := range replicas {
		b := fmt.Sprintf("%s %s", s.Name, strings.ToLower(string(s.Role)))
		if !s.InSync {
			b += " not in sync"
		}
		b += fmt.Sprintf(" epoch %s HW %s LEO %s", number(s.LeaderEpoch), number(s.HighWatermark), number(s.LogEndOffset))
		if t := podTrouble(o.Pods[epoch.ReplicaID(s.ID)]); t.Reason != "" {
			b += " (" + t.Reason + ")"
		}
		if s.Message != "" {
			b += " (" + truncate(s.Message, 100) + ")"
		}
		parts = append(parts, b)
	}
	return truncate(strings.Join(parts, "; "), 4096)
}

func number[T int32 | int64](v *T) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprint(*v)
}

// truncate cuts a text to what the schema allows, at a character's border.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}
