package core

import "github.com/tidemark-io/tidemark/pkg/epoch"

// Effect is something that the owner of a Core must do. Effects of one Take are
// carried out in order, each completed before the next is begun, except where the
// type says otherwise.
type Effect interface{ effect() }

type (
	// PersistRecord makes the record durable on the volume, before anything is done
	// because of it (rule 7).
	PersistRecord struct{ Record epoch.Record }
	// AssignEpoch makes "this epoch begins at the log's end" durable, before the
	// first append of the new leader (KAFKA-7415).
	AssignEpoch struct{ Epoch epoch.LeaderEpoch }
	// Truncate cuts the log to offset To, log and epoch cache; a batch in which To lies
	// goes as a whole, and the log then ends before To. Then call Core.Truncated.
	// BelowHighWatermark says that records thought to be committed go: that cannot be
	// unless an election was unclean.
	Truncate struct {
		To                 epoch.Offset
		BelowHighWatermark bool
	}
	// TruncateFully empties the log and lets it start at StartAt.
	TruncateFully struct{ StartAt epoch.Offset }
	// AppendFetched appends what the leader sent: only batches of epochs up to
	// MaxEpoch (KAFKA-18723). Then call Core.AppliedFetch with the same effect.
	AppendFetched struct {
		Records        []byte
		MaxEpoch       epoch.LeaderEpoch
		HighWatermark  epoch.Offset
		LogStartOffset epoch.Offset
	}
	// WriteRecord swaps Base for Next in the record's store, in the background, and
	// tells the result by Core.Written or Core.WriteFailed. One is outstanding at a
	// time. The adapter stamps the heartbeat's time.
	WriteRecord struct {
		Base epoch.Snapshot
		Next epoch.Record
	}
	// ReadRecord makes a quorum read of the record, in the background, and tells the
	// result by Core.ReadDone or Core.ReadFailed. No write is outstanding meanwhile.
	ReadRecord struct{}
	// Follow starts or restarts the fetch loop towards that leader; a loop that runs
	// is abandoned with what it has outstanding.
	Follow struct {
		Leader  epoch.ReplicaID
		Address epoch.Address
		Epoch   epoch.LeaderEpoch
	}
	// StopFollowing ends the fetch loop.
	StopFollowing struct{}
	// Complete answers a produce request that waited for its commit.
	Complete struct {
		Token uint64
		Err   error
	}
	// Changed says that what readers may see has changed: role, epoch, log end or
	// high watermark.
	Changed struct{}
	// Exit ends the process: its registration does not count any more. A new start
	// registers anew.
	Exit struct{ Reason string }
	// Regression reports that the record went backwards (rule 7).
	Regression struct{ Read, Known epoch.Record }
)

func (PersistRecord) effect() {}
func (AssignEpoch) effect()   {}
func (Truncate) effect()      {}
func (TruncateFully) effect() {}
func (AppendFetched) effect() {}
func (WriteRecord) effect()   {}
func (ReadRecord) effect()    {}
func (Follow) effect()        {}
func (StopFollowing) effect() {}
func (Complete) effect()      {}
func (Changed) effect()       {}
func (Exit) effect()          {}
func (Regression) effect()    {}
