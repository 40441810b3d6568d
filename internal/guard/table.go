package guard

// The guards, by the part that enforces them: the follower, the leader, its dealings
// with the record, the rules of the record itself, the volume, the log.
const (
	TruncateByEpoch Guard = iota
	OwnFloor
	ResponseOffset
	ResponseLastEpoch
	FetchedUpToRequestEpoch
	DivergingKeepsHighWatermark
	NewestCacheEpochInFetch
	FollowerFlushesFirst

	FetchOlderEpoch
	FetchNewerEpoch
	FetchSession
	FetchDirectory
	DivergingNotCounted
	DivergenceBeforeOffset
	MaximalISR
	UnknownPositionBlocks
	PositionVoidWithDirectory
	HighWatermarkNeverBack
	FreezeBelowMinISR
	LeaderFlushesFirst
	JoinAtEpochStart
	JoinAtHighWatermark
	JoinWithProvenHistory
	JoinOnlyToStay
	JoinWithFetchSession
	RefuseBelowMinISR
	AcknowledgeOnlyCommitted
	OffsetNotAvailable
	StaleServing

	OwnSession
	DropOlderRecord
	UndecidedUntilMoved
	OneWriteOutstanding
	MarkRegression
	EpochStartBeforeAppend
	PersistBeforeActing

	ElectFromISR
	NewEpochWithSameWinner
	NeverBelowMinISR
	StrikeOtherDirectory
	DirectoryUsedOnce
	DropKeepsMinISR
	DropAfterJoin
	NewEpochWithDrop
	FrozenInRecovery
	UncleanNamesEpoch
	RecoveryHearsAll
	RecoveryHearsAnew
	RecoveryTakesNewest
	RecoveryStrikesOthers
	RecoveryForgetsCommitted
	RecoveryKeepsHighWatermark
	ReportIsFinal

	OneHistory
	FrozenRecordIdle
	CutOtherHistory
	StartOfSession
	NewerLogKept
	DeleteCommittedOnly
	DeletionWaits

	CleanMarkOfSession
	CleanMarkGoesFirst
	WitnessOfMachine
	WitnessOfStart
	WitnessBeforeCount
	WitnessedBatchThere
	CutVoidsPromise
	ErrorVoidsPromise
	RewriteAfterError
	EveryBatchFlagFirst
	EveryBatchOfStart
	OwnHighWatermarkHeld

	EpochDurable
	RecoveryChecksums
	LowerRecoveryPoint
	LowerHighWatermark
	DuplicateBatches
	FetchedChecksums
	CompactCommittedOnly
	CompactKeepsLast
	CompactKeepsProducers
	SwapUnchanged
	TombstonesSeenByAll
	count
)

// Rules is the table, by guard.
var Rules = [count]Rule{
	TruncateByEpoch:             {"truncate-by-epoch", "KIP-101", "a new follower cuts to its own high watermark: committed records are lost, or logs differ for ever"},
	OwnFloor:                    {"own-floor", "KIP-279", "a follower cuts only by the leader's end of the epoch, not by its own: logs differ"},
	ResponseOffset:              {"response-offset", "KAFKA-18991", "an answer to a fetch of another offset is applied: a hole, or a cut of good records"},
	ResponseLastEpoch:           {"response-last-epoch", "DESIGN.md, the record", "an old diverging answer, doubled, cuts records fetched since"},
	FetchedUpToRequestEpoch:     {"fetched-up-to-request-epoch", "KAFKA-18723", "batches of a later epoch than the request's are appended to a history that they do not belong to"},
	DivergingKeepsHighWatermark: {"diverging-keeps-high-watermark", "KAFKA-14704", "the high watermark of a diverging answer covers records that are not the leader's"},
	NewestCacheEpochInFetch:     {"newest-cache-epoch-in-fetch", "DESIGN.md, the record", "a fetch names the epoch of the last record, and a former leader's empty epoch hides where the histories part"},
	FollowerFlushesFirst:        {"follower-flushes-first", "DESIGN.md, EveryBatch", "a fetch acknowledges what a power cut takes"},

	FetchOlderEpoch:           {"fetch-older-epoch", "KIP-320", "a fetch sent in an older epoch counts: its history is another"},
	FetchNewerEpoch:           {"fetch-newer-epoch", "KIP-320", "a leader that was replaced counts fetches meant for its successor"},
	FetchSession:              {"fetch-session", "KIP-903", "a delayed fetch of a process that lost its log counts"},
	FetchDirectory:            {"fetch-directory", "DESIGN.md rule 9", "a fetch counts that does not come from the registered volume"},
	DivergingNotCounted:       {"diverging-not-counted", "KAFKA-13141", "the log end of another history moves the high watermark"},
	DivergenceBeforeOffset:    {"divergence-before-offset", "KAFKA-12996", "a follower below the leader's log start cuts by an epoch that says nothing about it"},
	MaximalISR:                {"maximal-isr", "KIP-497", "the high watermark ignores an ISR that may yet be in force: the next leader lacks an acknowledged record"},
	UnknownPositionBlocks:     {"unknown-position-blocks", "KAFKA-7128, protocol.md 1.6", "members that have not fetched in this epoch are left out: the high watermark runs ahead of them"},
	PositionVoidWithDirectory: {"position-void-with-directory", "KIP-903", "what a lost volume held is counted for the new one"},
	HighWatermarkNeverBack:    {"high-watermark-never-back", "protocol.md I2", "a leader takes back what it called committed"},
	FreezeBelowMinISR:         {"freeze-below-min-isr", "KIP-966", "records are committed on fewer replicas than promised, and die with them"},
	LeaderFlushesFirst:        {"leader-flushes-first", "DESIGN.md, EveryBatch", "the leader counts itself for what a power cut takes"},
	JoinAtEpochStart:          {"join-at-epoch-start", "KAFKA-7128", "a replica joins the ISR that lacks committed records from before the epoch"},
	JoinAtHighWatermark:       {"join-at-high-watermark", "protocol.md 1.7", "a replica joins the ISR below the high watermark"},
	JoinWithProvenHistory:     {"join-with-proven-history", "I5, protocol.md 1.15", "a replica joins whose log, of another history, ends where the leader's begins since all was deleted; it leads, and shows in the place of deleted records what was never committed"},
	JoinOnlyToStay:            {"join-only-to-stay", "KIP-841", "a replica that is about to go joins the ISR, and acks=all waits for it"},
	JoinWithFetchSession:      {"join-with-fetch-session", "KIP-903", "a replica joins by the position of a process before it"},
	RefuseBelowMinISR:         {"refuse-below-min-isr", "protocol.md 1.2", "acks=all is taken although too few members are live"},
	AcknowledgeOnlyCommitted:  {"acknowledge-only-committed", "protocol.md I11", "acks=all is answered before the high watermark has passed"},
	OffsetNotAvailable:        {"offset-not-available", "KIP-207", "a new leader shows an older end than its predecessor did"},
	StaleServing:              {"stale-serving", "DESIGN.md rule 8", "a leader cut off from everybody goes on taking acks=1 records that will be lost"},

	OwnSession:             {"own-session", "DESIGN.md rule 2", "a replaced process goes on, leads, and counts as its successor"},
	DropOlderRecord:        {"drop-older-record", "DESIGN.md rule 7", "a late watch event takes a replica back to an older epoch"},
	UndecidedUntilMoved:    {"undecided-until-moved", "DESIGN.md rule 4", "a timed-out change is taken for dead and lands later"},
	OneWriteOutstanding:    {"one-write-outstanding", "DESIGN.md, writers", "two changes overlap and the older answer decides"},
	MarkRegression:         {"mark-regression", "DESIGN.md rule 7", "a restored record elects with epochs that were used before"},
	EpochStartBeforeAppend: {"epoch-start-before-append", "KAFKA-7415", "a leader that wrote nothing leaves no trace, and its successor's followers miss the divergence"},
	PersistBeforeActing:    {"persist-before-acting", "DESIGN.md rule 7", "a restarted replica does not know which epoch it acted in"},

	ElectFromISR:           {"elect-from-isr", "DESIGN.md rule 6", "a replica leads that lacks committed records"},
	NewEpochWithSameWinner: {"new-epoch-with-same-winner", "KAFKA-7164", "two leaderships share an epoch, and fetches of the first count in the second"},
	NeverBelowMinISR:       {"never-below-min-isr", "DESIGN.md rule 5", "a member that was dropped below min ISR is forgotten as a bearer of committed records, or the last one left is elected and lost"},
	StrikeOtherDirectory:   {"strike-other-directory", "KIP-966, DESIGN.md rule 3", "an emptied volume keeps its place in the ISR"},
	DirectoryUsedOnce:      {"directory-used-once", "KIP-858", "one volume serves as two replicas"},
	DropKeepsMinISR:        {"drop-keeps-min-isr", "protocol.md 1.18", "a reassignment drops the last bearers of committed records"},
	NewEpochWithDrop:       {"new-epoch-with-drop", "protocol.md 1.18", "a dropped and added replica counts by fetches from before"},
	FrozenInRecovery:       {"frozen-in-recovery", "DESIGN.md rule 7", "a record that went back is changed before it is known what was lost"},
	DropAfterJoin:          {"drop-after-join", "protocol.md 1.18", "a live copy is dropped before the one that takes part in its stead has caught up"},

	UncleanNamesEpoch:          {"unclean-names-epoch", "DESIGN.md rule 6", "a forgotten request elects uncleanly again, years later"},
	RecoveryHearsAll:           {"recovery-hears-all", "DESIGN.md rule 7", "recovery goes on without the one replica that knew the newest ISR: a replica that lacks committed records leads"},
	RecoveryHearsAnew:          {"recovery-hears-anew", "DESIGN.md rule 7", "a frozen record is put back from a backup, with reports from before what was committed since: a replica that lacks that leads"},
	RecoveryTakesNewest:        {"recovery-takes-newest", "DESIGN.md rule 7, protocol.md K12", "the restored record's ISR elects a replica that lacks committed records"},
	RecoveryForgetsCommitted:   {"recovery-forgets-committed", "DESIGN.md rule 7, I5", "a leader shows what only a leader on the record that was put back called committed, and the ISR does not have"},
	RecoveryKeepsHighWatermark: {"recovery-keeps-high-watermark", "DESIGN.md rules 3, 7", "the record is put back and a volume, too, to an image of its present session: the heartbeats that told them apart went with the record, and the image leads"},
	ReportIsFinal:              {"report-is-final", "DESIGN.md rule 7", "a replica learns of a record, and acts on it, after it has reported an older one to a recovery, which sets aside what is acknowledged then"},
	RecoveryStrikesOthers:      {"recovery-strikes-others", "DESIGN.md rule 7", "a replica that truncated by another history keeps its place in the ISR, and leads"},

	OneHistory:          {"one-history", "DESIGN.md rule 7", "a restored record that has gone on is followed, and committed records are cut"},
	FrozenRecordIdle:    {"frozen-record-idle", "DESIGN.md rule 7", "a record that was put back, or made anew, is taken for what this replica knows, and overwrites it"},
	CutOtherHistory:     {"cut-other-history", "DESIGN.md rule 7", "two logs hold different records at one offset under one epoch, and no fetch ever shows it"},
	StartOfSession:      {"start-of-session", "DESIGN.md rule 2", "after a recovery the process of another history passes for the registered one of the same session"},
	NewerLogKept:        {"newer-log-kept", "DESIGN.md rule 7, protocol.md 1.11.1", "a follower whose log is newer than the record cuts what may be committed"},
	DeleteCommittedOnly: {"delete-committed-only", "protocol.md 1.15", "the log start passes the high watermark: records vanish that were never committed, and followers cannot follow"},
	DeletionWaits:       {"deletion-waits", "KIP-107", "a deletion is confirmed, and an election brings the records back"},

	CleanMarkOfSession:   {"clean-mark-of-session", "KIP-966", "an old clean mark, from a restored snapshot, proves a log that was left behind"},
	CleanMarkGoesFirst:   {"clean-mark-goes-first", "KAFKA-10471", "a crash after a start counts as an orderly stop"},
	WitnessOfMachine:     {"witness-of-machine", "DESIGN.md, the promise", "a witness from before a power cut proves records that the cut took"},
	WitnessOfStart:       {"witness-of-start", "DESIGN.md, the promise", "the witness of an earlier process proves the log of a later one"},
	WitnessBeforeCount:   {"witness-before-count", "DESIGN.md, the promise", "a record counts that the witness does not know of"},
	WitnessedBatchThere:  {"witnessed-batch-there", "DESIGN.md, the promise", "an emptied or older volume is taken for the one that was witnessed"},
	CutVoidsPromise:      {"cut-voids-promise", "DESIGN.md, the promise", "recovery cuts acknowledged records and the directory id is kept"},
	ErrorVoidsPromise:    {"error-voids-promise", "DESIGN.md rule 10", "a failed sync is forgotten by a restart"},
	RewriteAfterError:    {"rewrite-after-error", "fsyncgate, DESIGN.md rule 10", "a sync that succeeds after one that failed is believed: a power cut takes what counts under the new directory id"},
	EveryBatchFlagFirst:  {"every-batch-flag-first", "DESIGN.md, the promise", "weaker acknowledgements are covered by a flag that is still set"},
	EveryBatchOfStart:    {"every-batch-of-start", "DESIGN.md, the promise", "a volume that was put back to an older state, flag included, keeps its place in the ISR"},
	OwnHighWatermarkHeld: {"own-high-watermark-held", "DESIGN.md, the promise", "a log that ends below what it knew to be committed is trusted"},

	EpochDurable:       {"epoch-durable", "KAFKA-7415", "a crash forgets that an epoch began"},
	RecoveryChecksums:  {"recovery-checksums", "protocol.md 1.14", "a torn batch is taken for a whole one"},
	LowerRecoveryPoint: {"lower-recovery-point", "protocol.md 1.14", "bytes written after a truncation count as synced before they are"},
	LowerHighWatermark: {"lower-high-watermark", "protocol.md 1.12", "after an unclean election a restarted replica takes for committed what it only fetched"},
	DuplicateBatches:   {"duplicate-batches", "KIP-98", "a retry is appended a second time"},
	FetchedChecksums:   {"fetched-checksums", "protocol.md 1.11", "a batch damaged on the way is appended"},

	CompactCommittedOnly:  {"compact-committed-only", "docs/compaction.md", "a key's committed record is removed for a later one, which an election then takes: the key is gone"},
	CompactKeepsLast:      {"compact-keeps-last", "docs/compaction.md", "the last batch of the log is another than the witness saw: the promise is lost"},
	CompactKeepsProducers: {"compact-keeps-producers", "KIP-98, KAFKA-5490", "a producer is forgotten while its retries are under way, and they are appended a second time"},
	SwapUnchanged:         {"swap-unchanged", "docs/compaction.md", "a compacted segment brings back what was truncated while it was written"},
	TombstonesSeenByAll:   {"tombstones-seen-by-all", "docs/compaction.md", "a replica that was away has missed a tombstone, leads, and brings back what was deleted"},
}
