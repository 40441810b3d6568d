package epoch

// ProducerIDsPerSession bounds how many ids of idempotent producers one process gives out:
// ids are given out by session, so that none is given out twice.
const ProducerIDsPerSession = 1 << 31

// LastImportableProducerID is the greatest id that a log may know that a record is made for:
// behind it the ids that sessions give out would end.
const LastImportableProducerID = 1<<62 - 1

// PartitionEpochFor is where the partition epochs of a new record have to begin if its log
// knows producers up to an id: a session is a partition epoch. An id that was given out
// twice makes records of its second producer look like the first one's, sent again, which
// are acknowledged and not appended.
func PartitionEpochFor(producerID int64) PartitionEpoch {
	return PartitionEpoch(max(producerID, 0)/ProducerIDsPerSession + 1)
}
