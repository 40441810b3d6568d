package explore

import (
	"math/bits"
	"unsafe"
)

// world is one state of everything. It is plain memory without gaps, so that it can
// be compared and hashed as bytes. Numbers of records, replicas, messages and writes
// are those of the tables; 0 is none.
type world struct {
	record   uint32              // as the store has it
	older    [older]uint32       // versions that somebody may yet see, newest first
	replicas [MaxReplicas]uint32 // by id
	writes   [MaxReplicas]uint32 // of the record, outstanding
	orphans  [maxOrphans]uint32  // writes that nobody waits for and that may land
	messages [MaxReplicas][slots]uint32

	fate       [MaxReplicas]fate // of the outstanding writes
	committed  [MaxRecords]entry // ghost: what was below some leader's high watermark
	by         [MaxRecords]int8  // ghost: in which leader epoch it was committed
	records    int8              // produced
	crashes    int8
	machine    int8
	ncommitted int8
	lost       [MaxRecords]int8 // ghost: machine crashes that took a record, by number
	pad        [1]int8
}

const older = 4

// fate of a write of the record.
type fate int8

const (
	onItsWay fate = iota
	landed
	refused
)

const worldSize = unsafe.Sizeof(world{})

// hash mixes the bytes of w, eight at a time.
func (w *world) hash() uint64 {
	h := uint64(worldSize)
	for _, x := range (*[worldSize / 8]uint64)(unsafe.Pointer(w)) {
		hi, lo := bits.Mul64(h^x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
		h = hi ^ lo ^ bits.RotateLeft64(x, 29)
	}
	hi, lo := bits.Mul64(h^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	if h = hi ^ lo; h == 0 {
		h = 1
	}
	return h
}
