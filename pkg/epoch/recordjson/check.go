package recordjson

import (
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// check names the first thing in r that no sequence of the rules can produce.
func check(r epoch.Record) error {
	for _, f := range []func(epoch.Record) string{checkCounters, checkReplicas, checkMembers, checkChanges, checkRecovery} {
		if msg := f(r); msg != "" {
			return fmt.Errorf("%w: %s", ErrMalformed, msg)
		}
	}
	return nil
}

func checkCounters(r epoch.Record) string {
	switch {
	case r.TopicID.IsZero():
		return "it has no topic id"
	case r.PartitionEpoch < 1:
		return fmt.Sprintf("partition epoch %d is below 1", r.PartitionEpoch)
	case r.LeaderEpoch < 0:
		return fmt.Sprintf("leader epoch %d is negative", r.LeaderEpoch)
	case r.WantedMinISR < 0 || r.MinISR < 0:
		return fmt.Sprintf("min ISR %d, effective %d, is negative", r.WantedMinISR, r.MinISR)
	}
	return ""
}

func checkReplicas(r epoch.Record) string {
	for i, p := range r.Replicas {
		if p.ID < 0 {
			return fmt.Sprintf("replica id %d is negative", p.ID)
		}
		if i > 0 && p.ID <= r.Replicas[i-1].ID {
			return fmt.Sprintf("replica %d does not follow replica %d", p.ID, r.Replicas[i-1].ID)
		}
		if p.Session < 0 || p.Session > epoch.Session(r.PartitionEpoch) {
			return fmt.Sprintf("replica %d has session %d, which is no earlier partition epoch", p.ID, p.Session)
		}
	}
	return ""
}

func checkMembers(r epoch.Record) string {
	for i, id := range r.ISR {
		if i > 0 && id <= r.ISR[i-1] {
			return fmt.Sprintf("in-sync replica %d does not follow %d", id, r.ISR[i-1])
		}
		if _, ok := r.Replica(id); !ok {
			return fmt.Sprintf("in-sync replica %d is not assigned", id)
		}
	}
	switch {
	case r.Leader < 0 && r.Leader != epoch.NoReplica:
		return fmt.Sprintf("leader %d is no replica", r.Leader)
	case r.Leader != epoch.NoReplica && !slices.Contains(r.ISR, r.Leader):
		return fmt.Sprintf("leader %d is not in sync", r.Leader)
	}
	return ""
}

func checkChanges(r epoch.Record) string {
	if len(r.Changes) > epoch.MaxChanges {
		return fmt.Sprintf("it remembers %d changes, at most %d are kept", len(r.Changes), epoch.MaxChanges)
	}
	for i, c := range r.Changes {
		if i > 0 && (c.PartitionEpoch <= r.Changes[i-1].PartitionEpoch || c.LeaderEpoch < r.Changes[i-1].LeaderEpoch) {
			return fmt.Sprintf("its changes go back at partition epoch %d", c.PartitionEpoch)
		}
	}
	if c := r.LastChange(); len(r.Changes) > 0 && (c.PartitionEpoch != r.PartitionEpoch || c.LeaderEpoch != r.LeaderEpoch) {
		return fmt.Sprintf("its epochs (partition %d, leader %d) are not those of its last change (%d, %d)",
			r.PartitionEpoch, r.LeaderEpoch, c.PartitionEpoch, c.LeaderEpoch)
	}
	return ""
}
