package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Position is where the log ends. The zero LeaderEpoch, in which no batch can have
// been written, says that no batch ends there.
type Position struct {
	LogEndOffset epoch.Offset
	// LeaderEpoch and CRC are those of the last batch.
	LeaderEpoch epoch.LeaderEpoch
	CRC         uint32
}

// Batch is the last batch, the zero Batch if there is none.
func (p Position) Batch() Batch {
	if p.LeaderEpoch <= 0 {
		return Batch{}
	}
	return Batch{p.LeaderEpoch, p.CRC}
}

// Witness says what a process had written, in memory that outlives the process as
// the page cache does, and dies with machine or pod as unsynced data may.
type Witness struct {
	BootID      string
	PodUID      string
	DirectoryID epoch.UUID
	StartID     epoch.StartID
	Position
	// Failed voids every proof: a write or sync failed.
	Failed bool
}

const (
	witnessName = "witness" // in WitnessDir
	witnessSize = 4096
	slotSize    = 512
	slotMagic   = "TMWIT001"
	textSize    = 64 // longest boot id, pod UID or start id
)

// A slot, little-endian: magic, sequence, log end offset, leader epoch, CRC, flags,
// directory id, three texts of a length byte and textSize bytes, checksum over all.
const (
	atSequence  = len(slotMagic)
	atOffset    = atSequence + 8
	atEpoch     = atOffset + 8
	atCRC       = atEpoch + 4
	atFlags     = atCRC + 4
	atDirectory = atFlags + 4
	atTexts     = atDirectory + 16
	atChecksum  = atTexts + 3*(1+textSize)
	slotEnd     = atChecksum + 4

	flagFailed = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// witnessFile is the mapped file. Its two slots are written in turn, so that a kill
// in the middle of one leaves the other.
type witnessFile struct {
	bytes WitnessMemory

	mu       sync.Mutex
	memory   []byte // nil: nothing mapped yet, or closed
	sequence uint64
	own      bool // what is mapped is this process's own
	failed   bool
}

// openWitness is openWitnessIn on a directory of tmpfs.
func openWitness(dir string) (*witnessFile, *Witness, string) {
	m, missing := onDirectory(dir)
	if m == nil {
		return nil, nil, missing
	}
	return openWitnessIn(m)
}

// openWitnessIn looks for the witness of the process before, which stays as it is. No
// witness comes with the reason.
func openWitnessIn(m WitnessMemory) (*witnessFile, *Witness, string) {
	f := &witnessFile{bytes: m}
	b, err := m.Map(witnessSize)
	if err != nil {
		return f, nil, fmt.Sprintf("none is left: %v", err)
	}
	f.memory = b
	w, sequence, ok := newest(b)
	if !ok {
		return f, nil, "it holds no valid state"
	}
	f.sequence = sequence
	return f, &w, ""
}

// newest is the valid slot with the highest sequence.
func newest(b []byte) (w Witness, sequence uint64, ok bool) {
	for slot := range 2 {
		if len(b) < (slot+1)*slotSize {
			break
		}
		s, n, valid := decodeSlot(b[slot*slotSize:][:slotSize])
		if valid && (!ok || n > sequence) {
			w, sequence, ok = s, n, true
		}
	}
	return w, sequence, ok
}

// replace puts a new file with w in the place of the old one, atomically: until the
// rename, the old witness is the witness.
func (f *witnessFile) replace(w Witness) error {
	slot := make([]byte, slotSize)
	if err := encodeSlot(slot, w); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		return errors.New("a write or sync has failed")
	}
	b, err := f.bytes.Replace(witnessSize, func(b []byte) {
		copy(b[slotSize:], slot)
		copy(b, slot)
		seal(b[:slotSize], 1)
	})
	if err != nil {
		return err
	}
	old := f.memory
	f.memory, f.sequence, f.own = b, 1, true
	return f.bytes.Unmap(old)
}

// put writes the next slot: no system call, no allocation. Before replace it does
// nothing, since what is mapped is the witness of the process before.
func (f *witnessFile) put(p Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory == nil || !f.own {
		return
	}
	flags := uint32(0)
	if f.failed {
		flags = flagFailed
	}
	s := f.nextSlot()
	binary.LittleEndian.PutUint64(s[atOffset:], uint64(p.LogEndOffset))
	binary.LittleEndian.PutUint32(s[atEpoch:], uint32(p.LeaderEpoch))
	binary.LittleEndian.PutUint32(s[atCRC:], p.CRC)
	binary.LittleEndian.PutUint32(s[atFlags:], flags)
	f.sequence++
	seal(s, f.sequence)
}

// markError sets the mark in both slots, whoever's witness is mapped: the newer one
// last, so that a kill in between leaves one that is valid.
func (f *witnessFile) markError() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
	if f.memory == nil || f.sequence == 0 {
		return
	}
	for range 2 {
		older, newer := f.nextSlot(), f.slot(f.sequence)
		copy(older[atOffset:atChecksum], newer[atOffset:atChecksum])
		binary.LittleEndian.PutUint32(older[atFlags:], flagFailed)
		f.sequence++
		seal(older, f.sequence)
	}
}

func (f *witnessFile) slot(sequence uint64) []byte {
	return f.memory[int(sequence+1)%2*slotSize:][:slotSize]
}

func (f *witnessFile) nextSlot() []byte { return f.slot(f.sequence + 1) }

func (f *witnessFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.memory
	f.memory, f.own = nil, false
	return f.bytes.Unmap(b)
}

// seal makes a slot valid, and must come last.
func seal(s []byte, sequence uint64) {
	binary.LittleEndian.PutUint64(s[atSequence:], sequence)
	binary.LittleEndian.PutUint32(s[atChecksum:], crc32.Checksum(s[:atChecksum], castagnoli))
}

func encodeSlot(s []byte, w Witness) error {
	copy(s, slotMagic)
	binary.LittleEndian.PutUint64(s[atOffset:], uint64(w.LogEndOffset))
	binary.LittleEndian.PutUint32(s[atEpoch:], uint32(w.LeaderEpoch))
	binary.LittleEndian.PutUint32(s[atCRC:], w.CRC)
	if w.Failed {
		binary.LittleEndian.PutUint32(s[atFlags:], flagFailed)
	}
	copy(s[atDirectory:], w.DirectoryID[:])
	for i, text := range []string{w.BootID, w.PodUID, string(w.StartID)} {
		if len(text) > textSize {
			return fmt.Errorf("%.80q has %d bytes, at most %d fit", text, len(text), textSize)
		}
		field := s[atTexts+i*(1+textSize):]
		field[0] = byte(len(text))
		copy(field[1:], text)
	}
	return nil
}

// decodeSlot reports false for a slot that was never written, or was torn.
func decodeSlot(s []byte) (w Witness, sequence uint64, ok bool) {
	if len(s) < slotEnd || string(s[:len(slotMagic)]) != slotMagic ||
		binary.LittleEndian.Uint32(s[atChecksum:]) != crc32.Checksum(s[:atChecksum], castagnoli) {
		return Witness{}, 0, false
	}
	var texts [3]string
	for i := range texts {
		field := s[atTexts+i*(1+textSize):]
		if field[0] > textSize {
			return Witness{}, 0, false
		}
		texts[i] = string(field[1:][:field[0]])
	}
	w = Witness{BootID: texts[0], PodUID: texts[1], StartID: epoch.StartID(texts[2])}
	copy(w.DirectoryID[:], s[atDirectory:])
	w.LogEndOffset = epoch.Offset(binary.LittleEndian.Uint64(s[atOffset:]))
	w.LeaderEpoch = epoch.LeaderEpoch(binary.LittleEndian.Uint32(s[atEpoch:]))
	w.CRC = binary.LittleEndian.Uint32(s[atCRC:])
	w.Failed = binary.LittleEndian.Uint32(s[atFlags:])&flagFailed != 0
	return w, binary.LittleEndian.Uint64(s[atSequence:]), true
}
