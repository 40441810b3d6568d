package history

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Record is one record as a consumer saw it.
type Record struct {
	// Offset is the record's place in the log.
	Offset int64
	// Value is what the producer sent.
	Value string
}

// Acks is what a producer asked to be told.
type Acks int8

const (
	// AcksAll is an answer once every in-sync replica has the record; it may never be lost again.
	AcksAll Acks = iota
	// AcksLeader is an answer once the leader has it (acks=1): it may be lost with that leader.
	AcksLeader
	// AcksNone asks for no answer (acks=0): what was sent may be lost.
	AcksNone
)

func (a Acks) String() string {
	switch a {
	case AcksAll:
		return "all"
	case AcksLeader:
		return "1"
	default:
		return "0"
	}
}

// Promise is what a producer may expect of the log. The zero value is an idempotent producer with acks=all.
type Promise struct {
	// Acks is the level that it writes with.
	Acks Acks
	// Plain tells that it is not idempotent: when it tries again, a record may be there twice or in another order.
	Plain bool
}

// Log remembers what producers sent and what they were told. Its methods may
// be called from several goroutines at once.
type Log struct {
	mu        sync.Mutex
	producers map[string]*producer
}

// producer is the history of one producer: its records are numbered 0, 1, 2… in the order in which it sent them.
type producer struct {
	promise  Promise
	outcomes []outcome
}

// outcome is the answer to one record.
type outcome struct {
	answer answer
	offset int64 // if acknowledged; meaningless with AcksNone
}

type answer int8

const (
	unknown  answer = iota
	acked           // it is in the log
	failed          // the client gave up; it may be in the log
	rejected        // it was never appended
)

// NewLog returns an empty history.
func NewLog() *Log { return &Log{producers: map[string]*producer{}} }

// Declare says what the named producer may expect; it must come before its first record. A producer without
// a declaration is idempotent and writes with acks=all.
func (l *Log) Declare(name string, p Promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producer(name).promise = p
}

func (l *Log) producer(name string) *producer {
	p := l.producers[name]
	if p == nil {
		p = &producer{}
		l.producers[name] = p
	}
	return p
}

// Send notes that the named producer is about to send its next record, and
// returns that record's number and value. Sends of one producer must be called
// in the order in which the client sends. The name may not contain a slash.
func (l *Log) Send(name string) (seq int, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.producer(name)
	p.outcomes = append(p.outcomes, outcome{})
	seq = len(p.outcomes) - 1
	return seq, valueOf(name, seq)
}

// Acked notes that a record was acknowledged at an offset. With [AcksNone] it says that the record was handed to the
// network, and the offset means nothing.
func (l *Log) Acked(name string, seq int, offset int64) {
	l.answered(name, seq, outcome{acked, offset})
}

// Failed notes that the client gave up on a record. It may be in the log all
// the same.
func (l *Log) Failed(name string, seq int) { l.answered(name, seq, outcome{answer: failed}) }

// Rejected notes that the one try to write a record was refused with an error that means that it was not appended.
func (l *Log) Rejected(name string, seq int) { l.answered(name, seq, outcome{answer: rejected}) }

func (l *Log) answered(name string, seq int, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers[name].outcomes[seq] = o
}

// Counts tells how many records were sent, acknowledged at whatever level, and given up or refused.
func (l *Log) Counts() (sent, acknowledged, gaveUp int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.producers {
		sent += len(p.outcomes)
		for _, o := range p.outcomes {
			switch o.answer {
			case acked:
				acknowledged++
			case failed, rejected:
				gaveUp++
			}
		}
	}
	return sent, acknowledged, gaveUp
}

func valueOf(name string, seq int) string { return name + "/" + strconv.Itoa(seq) }

// parse splits a value into its producer and number; ok is false for a value
// that no Send has made.
func (l *Log) parse(value string) (name string, seq int, ok bool) {
	name, text, found := strings.Cut(value, "/")
	if !found {
		return "", 0, false
	}
	seq, err := strconv.Atoi(text)
	p := l.producers[name]
	if err != nil || p == nil || seq < 0 || seq >= len(p.outcomes) || strconv.Itoa(seq) != text {
		return "", 0, false
	}
	return name, seq, true
}

// Write writes the history as text, a line for each record: value, acks, answer and offset. It is meant for a person
// who looks for the cause of a fault.
func (l *Log) Write(w io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := bufio.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(l.producers)) {
		p := l.producers[name]
		for seq, o := range p.outcomes {
			_, _ = fmt.Fprintf(b, "%s acks=%s %s %d\n", valueOf(name, seq), p.promise.Acks, o.answer, o.offset) // Flush has the error
		}
	}
	return b.Flush()
}

func (a answer) String() string {
	return [...]string{unknown: "unanswered", acked: "acknowledged", failed: "failed", rejected: "refused"}[a]
}
