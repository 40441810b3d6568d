package controllers

import (
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// uncleanRequest is the user's request, if it is of this leader epoch (DESIGN.md
// rule 6).
func (o *Observation) uncleanRequest() (epoch.UncleanRequest, bool) {
	q, ok, _ := o.Partition.UncleanElectionRequest()
	return epoch.UncleanRequest{LeaderEpoch: epoch.LeaderEpoch(q.LeaderEpoch), Replica: epoch.ReplicaID(q.Replica), Live: o.runningOutsiders()},
		ok && q.LeaderEpoch == int32(o.Record.LeaderEpoch)
}

// runningOutsiders are whom an unclean election can choose from. A member of the ISR
// could lead without a loss; that it is not elected means that it is not at work.
func (o *Observation) runningOutsiders() []epoch.ReplicaID {
	return slices.DeleteFunc(o.runningIDs(), o.Record.InSync)
}

// uncleanAsked reports that the user asked for an unclean election now, and that some
// replica could win it.
func (o *Observation) uncleanAsked() bool {
	q, ok := o.uncleanRequest()
	if !ok {
		return false
	}
	_, _, ok = epoch.UncleanWinner(o.Record, q)
	return ok
}

// tellUnclean says what an unclean election would cost, and how to ask for it: it is
// the end of the message that nobody can lead. "" if it could not be held.
func (o *Observation) tellUnclean() string {
	r := o.Record
	if r.LeaderEpoch == 0 || len(o.electable(r.Leader)) > 0 {
		return ""
	}
	id, end, ok := epoch.UncleanWinner(r, epoch.UncleanRequest{Replica: epoch.NoReplica, Live: o.runningOutsiders()})
	if !ok {
		return ""
	}
	return fmt.Sprintf("; an unclean election of %s would lose %s: ask for it by the annotation %s=%d",
		o.Partition.ReplicaName(int32(id)), tellLoss(r.Progress, end), v1alpha1.AnnotationElectUnclean, r.LeaderEpoch)
}

// tellLoss is what a leader whose log ends at end lacks, as far as that is known.
func tellLoss(p *epoch.Progress, end epoch.Offset) string {
	switch {
	case p == nil || p.HighWatermark == epoch.NoOffset:
		return fmt.Sprintf("every committed record from offset %d on, of which nobody knows how many there are", end)
	case end >= p.HighWatermark:
		return fmt.Sprintf("nothing that was known to be committed (its log ends at %d, the high watermark was %d) but what was committed since", end, p.HighWatermark)
	}
	return fmt.Sprintf("the committed offsets %d to %d at least", end, p.HighWatermark-1)
}
