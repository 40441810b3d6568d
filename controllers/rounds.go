package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// rounds remembers which round of reports this process has begun in each partition
// whose recovery the user has asked for. Only reports of that round are believed: a
// record that was put back may hold older ones. It is never read from the record, and
// is forgotten once the record has gone on, or after a minute: another operator may have
// made it go on while this process stood still. Replicas report within seconds, so a
// round that has to be begun again costs little.
type rounds struct {
	now func() time.Time

	mu    sync.Mutex
	begun map[types.UID]round
}

type round struct {
	id epoch.ChangeID
	at time.Time
}

// roundLasts is how long a round is gone by.
const roundLasts = time.Minute

func newRounds() *rounds { return &rounds{now: time.Now, begun: map[types.UID]round{}} }

func (r *rounds) begin(of types.UID, id epoch.ChangeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[of] = round{id, r.now()}
}

// current is the round to go by, empty if there is none.
func (r *rounds) current(of types.UID) epoch.ChangeID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.begun[of]; r.now().Sub(b.at) < roundLasts {
		return b.id
	}
	return ""
}

func (r *rounds) forget(of types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, of)
}
