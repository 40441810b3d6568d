package plugin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
)

// shownChanges is how many of the newest changes are shown.
const shownChanges = 8

// recordWriter writes a record as text.
type recordWriter struct {
	strings.Builder
	lease string
}

func (w *recordWriter) line(format string, args ...any) {
	w.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (w *recordWriter) field(name, format string, args ...any) {
	w.line("%-18s %s", name, fmt.Sprintf(format, args...))
}

func (w *recordWriter) name(id epoch.ReplicaID) string {
	if id == epoch.NoReplica {
		return "none"
	}
	return lease.HolderIdentity(w.lease, id)
}

// recordText is a record for a person.
func recordText(leaseName string, r epoch.Record) string {
	w := &recordWriter{lease: leaseName}
	w.field("Topic id", "%s (%s)", r.TopicID, r.TopicID.Canonical())
	w.leadership(r)
	w.line("")
	w.replicas(r)
	if r.Progress != nil {
		w.line("")
		w.progress(*r.Progress)
	}
	if r.Recovery != nil {
		w.line("")
		w.recovery(r)
	}
	w.line("")
	w.changes(r.Changes)
	return w.String()
}

func (w *recordWriter) leadership(r epoch.Record) {
	leader := w.name(r.Leader)
	if r.Leader != epoch.NoReplica {
		leader += fmt.Sprintf(", session %d", r.LeaderSession)
	} else if r.LastLeader.ID != epoch.NoReplica {
		leader += fmt.Sprintf("; last %s, in epoch %d", w.name(r.LastLeader.ID), r.LastLeader.LeaderEpoch)
	}
	w.field("Leader", "%s", leader)
	w.field("Leader epoch", "%d%s", r.LeaderEpoch, because(r.ElectionReason))
	w.field("Partition epoch", "%d", r.PartitionEpoch)
	w.field("ISR", "%s", w.names(r.ISR))
	w.field("Min ISR", "%d%s", r.MinISR, wanted(r))
	w.field("Heartbeat", "%s", heartbeat(r.Heartbeat))
	if s := r.Switchover; s != nil {
		to := "whom it chooses"
		if s.To != nil {
			to = w.name(*s.To)
		}
		w.field("Switchover", "session %d is asked to hand over to %s (%s)", s.Session, to, orUnknown(s.Reason))
	}
	if u := r.UncleanElection; u != nil {
		lost := "? records lost"
		if from, to, known := u.Lost(); known {
			lost = fmt.Sprintf("%d records lost, offsets from %d to before %d", to-from, from, to)
		}
		w.field("Unclean election", "in epoch %d of %s; %s", u.LeaderEpoch, w.name(u.Leader), lost)
	}
	if v := r.Recovered; v != nil {
		w.field("Recovered", "to partition epoch %d and leader epoch %d, from %s; faithful: %s", v.PartitionEpoch, v.LeaderEpoch, change(v.From), w.names(v.Faithful))
	}
}

func because(reason epoch.ElectionReason) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf(", elected because of %s", reason)
}

func wanted(r epoch.Record) string {
	if r.WantedMinISR == r.MinISR {
		return ""
	}
	return fmt.Sprintf(", wanted %d", r.WantedMinISR)
}

func heartbeat(h epoch.Heartbeat) string {
	if h.Renewed.IsZero() {
		return "none yet"
	}
	return fmt.Sprintf("at %s, good for %s", h.Renewed.UTC().Format(time.RFC3339Nano), h.Duration)
}

func (w *recordWriter) names(ids []epoch.ReplicaID) string {
	var names []string
	for _, id := range ids {
		names = append(names, w.name(id))
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

func (w *recordWriter) replicas(r epoch.Record) {
	for _, p := range r.Replicas {
		w.line("%s%s", w.name(p.ID), flags(r, p))
		if p.Session == epoch.NoSession {
			w.field("  Session", "none: no process has registered yet")
		} else {
			w.field("  Session", "%d, start %s, restarts %d, pod %s", p.Session, p.StartID, p.RestartCount, orUnknown(p.PodUID))
		}
		w.field("  Directory id", "%s", orNone(p.DirectoryID))
		w.field("  Volume id", "%s", orNone(p.VolumeID))
		if a := p.Address; a.Host != "" {
			w.field("  Address", "%s, ports %d and %d", a.Host, a.ClientPort, a.ReplicationPort)
		}
		if p.Session != epoch.NoSession {
			w.field("  At registration", "last epoch %s, LEO %s", known(p.LastEpoch), known(p.LogEndOffset))
		}
	}
}

func orNone(u epoch.UUID) string {
	if u.IsZero() {
		return "none yet"
	}
	return u.String()
}

// known is a number of which -1 means that it is not known.
func known[T ~int32 | ~int64](n T) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

func flags(r epoch.Record, p epoch.Replica) string {
	var words []string
	for _, f := range []struct {
		set  bool
		word string
	}{{p.ID == r.Leader, "leader"}, {slices.Contains(r.ISR, p.ID), "in ISR"}, {p.Adding, "adding"}, {p.Removing, "removing"}, {p.Stopping, "stopping"}, {p.Gone, "gone"}} {
		if f.set {
			words = append(words, f.word)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func (w *recordWriter) progress(p epoch.Progress) {
	flush := "Never"
	if p.FlushEveryBatch {
		flush = "EveryBatch"
	}
	w.line("Progress, as the leader told it with its heartbeat")
	w.field("  High watermark", "%s", known(p.HighWatermark))
	w.field("  Log start", "%s", known(p.LogStartOffset))
	w.field("  Epoch taken over", "%s", known(p.TookOver))
	w.field("  Flush", "%s", flush)
	for _, q := range p.Replicas {
		state := "not live"
		if q.Live {
			state = "live"
		}
		if q.Full {
			state += ", volume full"
		}
		if q.Damaged {
			state += ", log damaged"
		}
		if q.Deaf {
			state += ", a listener is not open"
		}
		w.field("  "+w.name(q.ID), "LEO %s, HW %s, epoch %s, %s", known(q.LogEndOffset), known(q.HighWatermark), known(q.LeaderEpoch), state)
	}
}

func (w *recordWriter) recovery(r epoch.Record) {
	v := r.Recovery
	w.line("FROZEN: epochs were seen to go backwards, and nothing changes until recovery is asked for (docs/requests.md)")
	w.field("  Highest known", "partition epoch %d, leader epoch %d, reported by %s", v.PartitionEpoch, v.LeaderEpoch, w.reporter(v.ReportedBy))
	if v.Remade {
		w.field("  Remade", "the Lease was gone, and was made anew")
	}
	round := "none: recovery was not asked for"
	if v.Round != "" {
		round = string(v.Round)
	}
	w.field("  Round", "%s", round)
	if v.Newest != nil {
		w.field("  Newest record", "%s", change(v.Newest.LastChange()))
	}
	w.field("  Awaited", "%s", w.names(r.Awaited()))
	for _, p := range v.Reports {
		text := "knows no record"
		if p.Known != (epoch.Change{}) {
			text = "knows " + change(p.Known)
		}
		w.field("  "+w.name(p.ID), "%s, HW %d, round %s", text, p.HighWatermark, orUnknown(string(p.Round)))
	}
}

func (w *recordWriter) reporter(id epoch.ReplicaID) string {
	if id == epoch.NoReplica {
		return "the operator"
	}
	return w.name(id)
}

func (w *recordWriter) changes(all []epoch.Change) {
	newest := all[max(0, len(all)-shownChanges):]
	w.line("Last changes (%d of %d remembered), the newest first", len(newest), len(all))
	for _, c := range slices.Backward(newest) {
		w.line("  %s", change(c))
	}
}

func change(c epoch.Change) string {
	return fmt.Sprintf("partition epoch %d, leader epoch %d, change %s", c.PartitionEpoch, c.LeaderEpoch, c.ID)
}
