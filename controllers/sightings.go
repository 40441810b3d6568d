package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// sightings remembers since when this process has seen a partition in some state.
// It is a memory for waiting politely, and nothing is unsafe if it is lost.
type sightings struct {
	now func() time.Time

	mu    sync.Mutex
	first map[types.UID]map[string]time.Time
}

func newSightings() *sightings {
	return &sightings{now: time.Now, first: map[types.UID]map[string]time.Time{}}
}

// since tells for how long a state has been seen; the first call starts it at 0.
func (s *sightings) since(partition types.UID, what string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.first[partition]
	if m == nil {
		m = map[string]time.Time{}
		s.first[partition] = m
	}
	at, ok := m[what]
	if !ok {
		at = s.now()
		m[what] = at
	}
	return s.now().Sub(at)
}

// keepOnly forgets the states of a partition that were not seen this time.
func (s *sightings) keepOnly(partition types.UID, present map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what := range s.first[partition] {
		if !present[what] {
			delete(s.first[partition], what)
		}
	}
	if len(s.first[partition]) == 0 {
		delete(s.first, partition)
	}
}

func (s *sightings) forget(partition types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.first, partition)
}
