package v1alpha1

// The condition types of a ReplicatedPartition. The first four are present from the first
// status on, the last two only while they are True: they are those of kstatus
// (sigs.k8s.io/cli-utils), by which GitOps tools tell what a partition is up to.
const (
	// ConditionReady is True while the partition serves reads and acks=all writes and
	// nothing stands in the operator's way. It is Unknown before the first election.
	ConditionReady = "Ready"
	// ConditionAvailable is True while a leader has taken over and at least min ISR
	// members are live, so that acks=all succeeds.
	ConditionAvailable = "Available"
	// ConditionInSync is True while every wanted replica is a live ISR member. Its
	// message names each replica with role, epoch, high watermark and log end offset.
	ConditionInSync = "InSync"
	// ConditionProgressing is True while the operator brings the cluster towards the
	// spec; it is False when that is done, or when it cannot go on.
	ConditionProgressing = "Progressing"
	// ConditionReconciling repeats a Progressing that is True, or a failure that is tried
	// again at once.
	ConditionReconciling = "Reconciling"
	// ConditionStalled repeats a Progressing that is False though not all is as the user
	// wants it: the operator cannot go on before something else changes.
	ConditionStalled = "Stalled"
)

// The reasons of the conditions: a closed list. Reasons that also name an event
// are in events.go.
const (
	// ReasonServing (Ready, Available: True): reads and acks=all writes succeed.
	ReasonServing = "Serving"
	// ReasonStarting (Unknown or False): no leader has been elected yet.
	ReasonStarting = "Starting"
	// ReasonNoLeader (False): nobody leads and no live ISR member can.
	ReasonNoLeader = "NoLeader"
	// ReasonLeaderLost (False): the leader is dead or silent; an election is due.
	ReasonLeaderLost = "LeaderLost"
	// ReasonTakingOver (False): the new leader has not reported that it serves.
	ReasonTakingOver = "TakingOver"
	// ReasonBelowMinInSyncReplicas (False): too few live ISR members for acks=all.
	ReasonBelowMinInSyncReplicas = "BelowMinInSyncReplicas"
	// ReasonVolumeFull (False): the leader refuses writes, since its volume is full.
	ReasonVolumeFull = "VolumeFull"
	// ReasonLogDamaged (Ready: False): the leader's log has bytes that are not what was
	// written, and there are too few other replicas in sync to rebuild it from.
	ReasonLogDamaged = "LogDamaged"
	// ReasonRecordMissing (False): the partition record was made once and is gone.
	ReasonRecordMissing = "RecordMissing"
	// ReasonRecordForeign (False): the Lease of that name is not this partition's.
	ReasonRecordForeign = "RecordForeign"
	// ReasonRecordInvalid (False): the record cannot be read, or was edited by hand.
	ReasonRecordInvalid = "RecordInvalid"
	// ReasonRecoveryRequired (False): epochs were seen to go backwards; the record is
	// frozen until a user decides.
	ReasonRecoveryRequired = "RecoveryRequired"
	// ReasonRecovering (False; Progressing: True): the user has asked for recovery, and
	// it waits for the reports of some replicas.
	ReasonRecovering = "Recovering"
	// ReasonQuarantined (False): volumes of an earlier partition of this name are there,
	// and nothing begins until the user has said what becomes of them.
	ReasonQuarantined = "Quarantined"
	// ReasonRequestInvalid (Progressing: False): an annotation that makes a request
	// cannot be read.
	ReasonRequestInvalid = "RequestInvalid"
	// ReasonNameConflict (False): an object of a name that we need is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonAllInSync (InSync: True): every wanted replica is a live ISR member.
	ReasonAllInSync = "AllInSync"
	// ReasonOutOfSync (InSync: False): some replica is dead, lagging or not there yet.
	ReasonOutOfSync = "OutOfSync"
	// ReasonComplete (Progressing: False): everything is as the spec says.
	ReasonComplete = "Complete"
	// ReasonReassigning (Progressing: True): replicas are being added or removed.
	ReasonReassigning = "Reassigning"
	// ReasonReplacing (Progressing: True): a replica that was lost with its node is made
	// anew on another one.
	ReasonReplacing = "Replacing"
	// ReasonCatchingUp (Progressing: True): a replica that is not in sync copies what it
	// lacks from the leader.
	ReasonCatchingUp = "CatchingUp"
	// ReasonRollingOut (Progressing: True): pods are being replaced by newer ones.
	ReasonRollingOut = "RollingOut"
	// ReasonSwitchingOver (Progressing: True): the leader hands over to another replica.
	ReasonSwitchingOver = "SwitchingOver"
	// ReasonSwitchoverRefused (Progressing: False): whom the user wants to lead cannot.
	ReasonSwitchoverRefused = "SwitchoverRefused"
	// ReasonPaused (Progressing: False): the user keeps the operator from changing anything.
	ReasonPaused = "Paused"
	// ReasonSuspending (Progressing: True): the pods of a suspended partition are ending.
	ReasonSuspending = "Suspending"
	// ReasonSuspended (False): no pod runs, since the user wants that; volumes are kept.
	ReasonSuspended = "Suspended"
	// ReasonWaitingForReplicas (Progressing): a step waits until replicas are in sync.
	ReasonWaitingForReplicas = "WaitingForReplicas"
	// ReasonImagePull (Progressing: False): the image of a replica cannot be pulled.
	ReasonImagePull = "ImagePull"
	// ReasonCrashLooping (Progressing: False): a replica's container keeps exiting.
	ReasonCrashLooping = "CrashLooping"
	// ReasonUnschedulable (Progressing: False): a pod finds no node.
	ReasonUnschedulable = "Unschedulable"
	// ReasonVolumePending (Progressing: False): a volume claim gets no volume, as when its
	// storage class does not exist.
	ReasonVolumePending = "VolumePending"
	// ReasonResizing (Progressing: True): volumes are growing to what the spec wants.
	ReasonResizing = "Resizing"
	// ReasonStorageResizeRefused (Progressing: False): the volume cannot grow: its class does
	// not allow it, or its provider refuses the size.
	ReasonStorageResizeRefused = "StorageResizeRefused"
	// ReasonWaitingForAddress (Progressing: True): the address of a listener is not known yet.
	ReasonWaitingForAddress = "WaitingForAddress"
	// ReasonAddressConflict (Progressing: False): clients outside of the cluster would be told
	// the same address for two replicas, and so are told it for none.
	ReasonAddressConflict = "AddressConflict"
	// ReasonQuotaExceeded (Progressing: False): a ResourceQuota of the namespace leaves no
	// room for an object.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPermissionMissing (Progressing: False): the operator may not do what it has to;
	// the message names verb, resource and namespace.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonTopicTaken (False): an older partition of the namespace has the same topic name,
	// and this one, which has no record yet, is not started.
	ReasonTopicTaken = "TopicTaken"
	// ReasonApplyFailed (Progressing: False): the API server refused an object, for another
	// reason.
	ReasonApplyFailed = "ApplyFailed"
)
