package replica

import "github.com/tidemark-io/tidemark/pkg/epoch"

// LastImportableProducerID is the greatest id that a log may know that a record is made for:
// behind it the ids that sessions give out would end.
const LastImportableProducerID = 1<<62 - 1

// PartitionEpochFor is where the partition epochs of a new record have to begin if its log
// knows producers up to an id: ids are given out by session, and a session is a partition
// epoch. An id that was given out twice makes records of its second producer look like
// the first one's, sent again, which are acknowledged and not appended.
func PartitionEpochFor(producerID int64) epoch.PartitionEpoch {
	return epoch.PartitionEpoch(max(producerID, 0)/producerIDsPerSession + 1)
}
