package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// RecordState says what was found where the partition record should be.
type RecordState int

const (
	// RecordUnknown is the zero value: it was not looked for.
	RecordUnknown RecordState = iota
	// RecordPresent means that the record was read.
	RecordPresent
	// RecordMissing means that a quorum read found no Lease.
	RecordMissing
	// RecordForeign means that the Lease belongs to somebody else.
	RecordForeign
	// RecordInvalid means that the Lease is ours and cannot be read.
	RecordInvalid
)

func (s RecordState) String() string {
	return [...]string{"Unknown", "Present", "Missing", "Foreign", "Invalid"}[s]
}

// Observation is all that one plan is made from. Planning reads nothing else: no
// clock, no API.
type Observation struct {
	Partition *v1alpha1.ReplicatedPartition

	RecordState RecordState
	// RecordProblem says what is wrong with a foreign or invalid record.
	RecordProblem string
	// Record is set if RecordState is RecordPresent.
	Record epoch.Record

	// Kept holds the volume claims of an earlier partition of this name, by replica id,
	// while this one has no record yet.
	Kept map[epoch.ReplicaID]*corev1.PersistentVolumeClaim

	// TopicHolder names another partition of the namespace that has the topic already; it is
	// looked for only while there is no record, and "" if there is none.
	TopicHolder string

	// Round is the round of reports that this process has begun, empty without one.
	Round epoch.ChangeID

	// Pods and Claims hold our own objects by replica id. Those that are being
	// deleted are among them.
	Pods   map[epoch.ReplicaID]*corev1.Pod
	Claims map[epoch.ReplicaID]*corev1.PersistentVolumeClaim
	// Homes holds the nodes of replicas that are not well and whose volume cannot leave.
	Homes map[epoch.ReplicaID]home
	// HomesHidden says why they could not be looked at, "" if they could.
	HomesHidden string
	// Children holds what exists of the objects in Desired.Children, same order; nil
	// where there is none.
	Children []client.Object
	// Surplus holds children of ours that are not desired any more.
	Surplus []client.Object
	// Desired is what the spec and the record ask for.
	Desired Desired
	// Foreign names the objects that are in the way and not ours.
	Foreign []string
	// Taken names those in the way of a listener only: replicas can do without.
	Taken []string
	// NodeAddresses holds the addresses of nodes that run replicas, as far as the operator may
	// know them and a listener asks for them.
	NodeAddresses map[string][]corev1.NodeAddress

	// Silence is for how long this process has seen no heartbeat of the leader, not
	// counting time in which the API could not be read.
	Silence time.Duration
	// FirstRegistered is for how long a registered replica of a partition that never
	// had a leader has been seen.
	FirstRegistered time.Duration
	// PreferredFit is for how long the preferred leader has been seen fit to lead.
	PreferredFit time.Duration
	// Left is about how long replicas that copy the log will take; those of whom that is
	// not known yet are left out.
	Left map[epoch.ReplicaID]time.Duration
	// Unplaced is for how long each pod has been seen to find no node.
	Unplaced map[types.UID]time.Duration
	// Deleting is for how long each pod has been seen to be on its way out.
	Deleting map[types.UID]time.Duration
}

// topicID is the id of the partition's log, as the status shows it. Before there is a
// record it is the id of the log that the user wants to adopt, else the object's UID. The
// API server makes UIDs that always parse.
func topicID(rp *v1alpha1.ReplicatedPartition) (epoch.UUID, error) {
	if q, _ := adoptRequest(rp); rp.Status.TopicID == "" && !q.topicID.IsZero() {
		return q.topicID, nil
	}
	return epoch.ParseUUID(rp.EffectiveTopicID())
}

// target is the wanted set of replica ids: 0 to replicas-1.
func target(rp *v1alpha1.ReplicatedPartition) []epoch.ReplicaID {
	ids := make([]epoch.ReplicaID, rp.EffectiveReplicas())
	for i := range ids {
		ids[i] = epoch.ReplicaID(i)
	}
	return ids
}
