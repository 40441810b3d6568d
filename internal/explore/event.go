package explore

// eventKind is what may happen to one replica.
type eventKind uint8

const (
	started    eventKind = iota // arg: the record that it registers in
	crashed                     // the process ends
	cut                         // the machine crashes; arg: what stays of the log
	saw                         // arg: the record, from a watch
	read                        // arg: the record, by a quorum read
	wrote                       // arg: the record that is the result of its write
	conflicted                  // its write was refused
	gaveUp                      // its write was not answered
	timePassed                  // more than all limits
	lostSight                   // arg: the follower whose connection closed a while ago
	produced                    // arg: the record's number
	flushed                     // its log is durable up to its end
	asked                       // a follower sends its next fetch
	gotFetch                    // arg: the message
	gotAnswer                   // arg: the message
)

// event is something that happens to one replica: the replica's number, the kind and
// the argument in one word, which is quick to look up.
type event uint64

func eventAt(replica uint32, kind eventKind, arg uint32) event {
	return event(replica)<<36 | event(kind)<<32 | event(arg)
}

func (e event) replica() uint32 { return uint32(e >> 36) }
func (e event) kind() eventKind { return eventKind(e >> 32 & 0xf) }
func (e event) arg() uint32     { return uint32(e) }

// outcome is what an event makes of a replica, and what the replica says.
type outcome struct {
	impossible bool // the event cannot happen, or changes nothing
	replica    uint32
	record     uint32 // a registration: the record after it
	write      uint32
	message    uint32
	acked      uint8 // records acknowledged, by number
	acted      bool  // something followed but the ageing of instants
	flaw       uint32
}

// happen is the outcome of an event: worked out once, and then known.
func (x *Explorer) happen(replica uint32, kind eventKind, arg uint32) *outcome {
	e := eventAt(replica, kind, arg)
	n, ok := x.outcomes[e]
	if !ok {
		n = uint32(len(x.known))
		x.known = append(x.known, x.work(e))
		x.outcomes[e] = n
	}
	return &x.known[n]
}
