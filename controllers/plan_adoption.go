package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// This file is about volumes that an earlier ReplicatedPartition of the same name has
// left. To begin an empty log over them, or to go on with what is on them, are both
// wrong if the user wanted the other; so nothing begins until the user has said which.
//
// A log that is adopted keeps its topic id, and so its directory ids and what they
// promise: to replicas and clients it is the log that it was, in a later epoch. Its
// record is gone with the object that it belonged to, and is made as a lost one is:
// frozen, for the replicas to report to (DESIGN.md rule 7), and recovered from what all
// of them know.

// adoption is what the user has said about kept volumes; the zero value is nothing.
type adoption struct {
	// topicID of the log to go on with.
	topicID epoch.UUID
	// none: an empty log is to begin.
	none bool
}

// adoptRequest is what AnnotationAdopt says. The error tells how to write it.
func adoptRequest(rp *v1alpha1.ReplicatedPartition) (adoption, error) {
	text, ok := rp.Annotations[v1alpha1.AnnotationAdopt]
	if !ok || text == v1alpha1.AdoptNone {
		return adoption{none: ok}, nil
	}
	id, err := epoch.ParseUUID(text)
	if err != nil || id.IsZero() {
		return adoption{}, fmt.Errorf("annotation %s is %q; it must be the topic id of the log to go on with, or %q to begin an empty one",
			v1alpha1.AnnotationAdopt, text, v1alpha1.AdoptNone)
	}
	return adoption{topicID: id}, nil
}

// planFirstRecord makes the record of a partition that has none yet.
func planFirstRecord(o *Observation, p *Plan) {
	q, err := adoptRequest(o.Partition)
	switch doomed := doomedClaims(o.Partition, o.Kept); {
	case o.TopicHolder != "":
		p.recheck(foreignRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonTopicTaken, "%s", o.tellTopicTaken())
	case err != nil:
		p.note(metav1.ConditionFalse, v1alpha1.ReasonRequestInvalid, "%s", err)
	case len(doomed) > 0:
		p.recheck(recordRecheck)
		p.note(metav1.ConditionTrue, v1alpha1.ReasonStarting, "waiting until the volume claims of an earlier partition are deleted with it: %s", strings.Join(doomed, ", "))
	case o.quarantine() != "":
		p.recheck(recordRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonQuarantined, "%s", o.quarantine())
	case !q.topicID.IsZero():
		p.add(Adopt{TopicID: q.topicID})
		p.recheck(time.Millisecond)
		p.note(metav1.ConditionTrue, v1alpha1.ReasonRecovering, "making a frozen partition record for the replicas to report what they know of topic id %s", q.topicID)
	default:
		p.add(CreateRecord{})
		p.recheck(time.Millisecond)
		p.note(metav1.ConditionTrue, v1alpha1.ReasonStarting, "making the partition record")
	}
}

// quarantine says why nothing begins until the user has spoken, "" if something may.
func (o *Observation) quarantine() string {
	q, err := adoptRequest(o.Partition)
	switch {
	case o.RecordState != RecordMissing, o.Partition.Status.TopicID != "":
		return ""
	case !q.topicID.IsZero() && !keptOf(o.Kept, q.topicID):
		return fmt.Sprintf("there is no volume claim of topic id %s to adopt: %s; correct the annotation %s, or remove it", q.topicID, tellKept(o.Partition, o.Kept), v1alpha1.AnnotationAdopt)
	case !q.topicID.IsZero():
		return ""
	case len(o.Kept) > 0 && (err != nil || !q.none), ownKept(o.Partition, o.Kept):
		return tellQuarantine(o.Partition, o.Kept)
	}
	return ""
}

// ownKept reports that a claim holds this very partition's log: it had a record, and its
// status was lost. What was said of an earlier partition's volumes is not meant for that.
func ownKept(rp *v1alpha1.ReplicatedPartition, kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim) bool {
	own, err := epoch.ParseUUID(string(rp.UID))
	for _, c := range kept {
		if id, known := keptTopicID(c); err == nil && known && id == own {
			return true
		}
	}
	return false
}

// keptOf reports whether a kept claim may hold the log of a topic id.
func keptOf(kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim, topic epoch.UUID) bool {
	for _, c := range kept {
		if id, known := keptTopicID(c); !known || id == topic {
			return true
		}
	}
	return false
}

// keptTopicID is whose log a claim's volume holds, as far as the claim tells: one that was
// made by hand may not.
func keptTopicID(c *corev1.PersistentVolumeClaim) (epoch.UUID, bool) {
	id, err := epoch.ParseUUID(c.Annotations[v1alpha1.AnnotationTopicID])
	return id, err == nil && !id.IsZero()
}

// doomedClaims are those that are about to go: with the earlier partition, which owned
// them, or since somebody deleted them.
func doomedClaims(rp *v1alpha1.ReplicatedPartition, kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim) []string {
	var names []string
	for _, id := range sortedIDs(kept) {
		c := kept[id]
		owned := slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == "ReplicatedPartition" && r.Name == rp.Name && r.UID != rp.UID
		})
		if c.DeletionTimestamp != nil || owned {
			names = append(names, c.Name)
		}
	}
	return names
}

// tellKept lists what the volumes are known to hold.
func tellKept(rp *v1alpha1.ReplicatedPartition, kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim) string {
	if len(kept) == 0 {
		return fmt.Sprintf("no volume claim of %s is left", rp.Name)
	}
	parts := make([]string, 0, len(kept))
	for _, id := range sortedIDs(kept) {
		what := "a log of a topic id that the claim does not tell"
		if topic, known := keptTopicID(kept[id]); known {
			what = "the log of topic id " + topic.String()
		}
		parts = append(parts, fmt.Sprintf("%s holds %s", kept[id].Name, what))
	}
	return strings.Join(parts, ", ")
}

// tellQuarantine says what is there, and what the user may ask for.
func tellQuarantine(rp *v1alpha1.ReplicatedPartition, kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim) string {
	example := "<topic id>"
	for _, id := range sortedIDs(kept) {
		if topic, known := keptTopicID(kept[id]); known {
			example = topic.String()
			break
		}
	}
	return fmt.Sprintf("an earlier partition has left volumes: %s; nothing begins until you choose: go on with that log by the annotation %s=%s, or begin an empty one by %s=%s, which keeps the old data on the volumes, set aside",
		tellKept(rp, kept), v1alpha1.AnnotationAdopt, example, v1alpha1.AnnotationAdopt, v1alpha1.AdoptNone)
}

// adopting reports that the record was made, frozen, to adopt the log that the user has
// named, and is to be recovered without being asked for once more.
func (o *Observation) adopting() bool {
	q, _ := adoptRequest(o.Partition)
	v := o.Record.Recovery
	return v != nil && v.Remade && o.Record.PartitionEpoch == adoptedAt && q.topicID == o.Record.TopicID
}

// adoptedAt is the partition epoch of the record that is made for an adoption: below all
// that a replica can have acted upon.
const adoptedAt epoch.PartitionEpoch = 1
