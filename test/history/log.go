package history

import (
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

// Log remembers what producers sent and what they were told. Its methods may
// be called from several goroutines at once.
type Log struct {
	mu        sync.Mutex
	producers map[string]*producer
}

// producer is the history of one producer: its records are numbered 0, 1, 2… in the order in which it sent them.
type producer struct {
	outcomes []outcome
}

// outcome is the answer to one record; unknown until one came.
type outcome struct {
	acked  bool
	failed bool
	offset int64
}

// NewLog returns an empty history.
func NewLog() *Log { return &Log{producers: map[string]*producer{}} }

// Send notes that the named producer is about to send its next record, and
// returns that record's number and value. Sends of one producer must be called
// in the order in which the client sends. The name may not contain a slash.
func (l *Log) Send(name string) (seq int, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.producers[name]
	if p == nil {
		p = &producer{}
		l.producers[name] = p
	}
	p.outcomes = append(p.outcomes, outcome{})
	seq = len(p.outcomes) - 1
	return seq, name + "/" + strconv.Itoa(seq)
}

// Acked notes that a record was acknowledged at an offset.
func (l *Log) Acked(name string, seq int, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.producers[name].outcomes[seq]
	o.acked, o.offset = true, offset
}

// Failed notes that the client gave up on a record. It may be in the log all
// the same.
func (l *Log) Failed(name string, seq int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers[name].outcomes[seq].failed = true
}

// Counts tells how many records were sent, acknowledged and given up.
func (l *Log) Counts() (sent, acked, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.producers {
		sent += len(p.outcomes)
		for _, o := range p.outcomes {
			if o.acked {
				acked++
			}
			if o.failed {
				failed++
			}
		}
	}
	return sent, acked, failed
}

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
