package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what one operator process remembers from one look to the next: for how long
// things have been as they are, which no object says. A new process begins with none.
type memory struct {
	clock      *readableClock
	heartbeats *heartbeats
	sightings  *sightings
	pace       *pace
	known      *known
	rounds     *rounds
	copies     *copies
	nodes      *nodeBook
	hangs      *hangs
}

// newMemory is an empty one. readable tells whether the API can be read.
func newMemory(readable func(context.Context) error) memory {
	clock := newReadableClock(readable)
	return memory{
		clock: clock, heartbeats: newHeartbeats(clock), sightings: newSightings(), pace: newPace(),
		known: newKnown(), rounds: newRounds(), copies: newCopies(), nodes: newNodeBook(), hangs: newHangs(),
	}
}

// forgetUID forgets a partition that is gone.
func (m *memory) forgetUID(uid types.UID) {
	m.heartbeats.forget(uid)
	m.sightings.forget(uid)
	m.pace.forget(uid)
	m.rounds.forget(uid)
	m.copies.forget(uid)
	m.hangs.forget(uid)
}
