package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// rounds remembers which round of reports this process has begun in each partition
// whose recovery the user has asked for. Only reports of that round are believed: a
// record that was put back may hold older ones. It is never read from the record, and
// is forgotten once the record has gone on.
type rounds struct {
	mu    sync.Mutex
	begun map[types.UID]epoch.ChangeID
}

func newRounds() *rounds { return &rounds{begun: map[types.UID]epoch.ChangeID{}} }

func (r *rounds) begin(of types.UID, round epoch.ChangeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[of] = round
}

// current is the round begun, empty if there is none.
func (r *rounds) current(of types.UID) epoch.ChangeID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun[of]
}

func (r *rounds) forget(of types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, of)
}
