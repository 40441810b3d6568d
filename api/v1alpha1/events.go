package v1alpha1

// The reasons of events: a closed list, beside the condition reasons. An event is
// sent on a transition only.
const (
	// EventRecordCreated tells that the partition record was made.
	EventRecordCreated = "RecordCreated"
	// EventLeaderElected tells that the record names a new leader epoch.
	EventLeaderElected = "LeaderElected"
	// EventISRChanged tells that the in-sync set has changed.
	EventISRChanged = "ISRChanged"
	// EventAssignmentChanged tells that replicas or the minimum were changed.
	EventAssignmentChanged = "AssignmentChanged"
	// EventPodCreated tells that a replica's pod was made.
	EventPodCreated = "PodCreated"
	// EventPodDeleted tells that a replica's pod was deleted, and why.
	EventPodDeleted = "PodDeleted"
	// EventVolumeDeleted tells that a volume claim was deleted, and why.
	EventVolumeDeleted = "VolumeDeleted"
	// EventRecordRecovered tells that a record which went backwards goes on, on request.
	EventRecordRecovered = "RecordRecovered"
	// EventUncleanElection warns of an election that may have lost committed records,
	// and, once it is known, which.
	EventUncleanElection = "UncleanElection"
	// EventSwitchoverRequested: the leader was asked to hand over to another replica.
	EventSwitchoverRequested = "SwitchoverRequested"
	// EventSingleReplica warns once that one replica cannot survive a drain.
	EventSingleReplica = "SingleReplica"
)
