package explore

// check judges a world, after noting what its leaders have committed.
func (x *Explorer) check(w *world) *flaw {
	for i := range x.Replicas {
		if p := &x.tables.replicas.things[w.replicas[i]]; p.leads && p.hw > w.ncommitted {
			for o := w.ncommitted; o < p.hw; o++ {
				w.committed[o], w.by[o] = p.log[o], p.epoch
			}
			w.ncommitted = p.hw
		}
	}
	for i := range x.Replicas {
		p := &x.tables.replicas.things[w.replicas[i]]
		if !p.up {
			continue
		}
		if f := x.checkAgreement(w, i, p); f != nil {
			return f
		}
		if p.leads {
			if f := x.checkLeader(w, i, p); f != nil {
				return f
			}
		}
	}
	if f := x.checkMembers(w, w.record); f != nil {
		return f
	}
	for i := range x.Replicas {
		if n := w.writes[i]; n != 0 && w.fate[i] == onItsWay {
			if f := x.checkMembers(w, x.tables.writes.things[n].next); f != nil {
				return f
			}
		}
	}
	if f := x.checkLoss(w); f != nil {
		return f
	}
	return x.checkMatching(w)
}

// checkLoss judges what is left after machines have lost data.
func (x *Explorer) checkLoss(w *world) *flaw {
	if w.machine == 0 {
		return nil
	}
	rec := &x.tables.records.things[w.record]
	electable := int(w.machine) >= x.MinISR
	for i := range x.Replicas {
		electable = electable || rec.isr>>i&1 == 1 && x.promise(w, rec, i)
	}
	if !electable && x.watched[Electable] {
		return flawf(Electable, "after %d machine crashes, with min ISR %d, no volume of the ISR keeps its promise: nobody may lead", w.machine, x.MinISR)
	}
	for o := range w.ncommitted {
		held := int(w.lost[w.committed[o].value-1]) >= x.MinISR || !x.watched[Durable]
		for i := range x.Replicas {
			held = held || x.tables.replicas.things[w.replicas[i]].log[o] == w.committed[o]
		}
		if !held {
			return flawf(Durable, "%v, committed at offset %d with min ISR %d, is in no log after %d machines lost it", w.committed[o], o, x.MinISR,
				w.lost[w.committed[o].value-1])
		}
	}
	return nil
}

// promise reports that the volume of replica i is still the one that the record knows.
func (x *Explorer) promise(w *world, rec *recordInfo, i int) bool {
	r := x.tables.replicas.things[w.replicas[i]].replica
	return !r.void && r.directory == rec.directory[i]
}

func (x *Explorer) checkAgreement(w *world, i int, p *replicaInfo) *flaw {
	if !x.watched[Agreement] {
		return nil
	}
	for o := int8(0); o < min(p.hw, p.leo); o++ {
		if o >= w.ncommitted || p.log[o] != w.committed[o] {
			return flawf(Agreement, "%c holds %v at offset %d, below its high watermark; committed is %v", letter(i), p.log[o], o, w.committed[o])
		}
	}
	return nil
}

func (x *Explorer) checkLeader(w *world, i int, p *replicaInfo) *flaw {
	if x.watched[OneLeader] {
		for j := range i {
			if q := &x.tables.replicas.things[w.replicas[j]]; q.leads && q.epoch == p.epoch {
				return flawf(OneLeader, "%c and %c both lead epoch %d", letter(j), letter(i), p.epoch)
			}
		}
	}
	if !x.watched[Complete] {
		return nil
	}
	for o := range w.ncommitted {
		if w.by[o] <= p.epoch && p.log[o] != w.committed[o] {
			return flawf(Complete, "%c leads epoch %d and has %v at offset %d, where %v is committed", letter(i), p.epoch, p.log[o], o, w.committed[o])
		}
	}
	return nil
}

// checkMembers leaves out volumes that have broken their promise: they are struck when
// they come back.
func (x *Explorer) checkMembers(w *world, record uint32) *flaw {
	if !x.watched[Members] {
		return nil
	}
	rec := &x.tables.records.things[record]
	for i := range x.Replicas {
		p := &x.tables.replicas.things[w.replicas[i]]
		if rec.isr>>i&1 == 0 || !x.promise(w, rec, i) {
			continue
		}
		for o := range w.ncommitted {
			if p.log[o] != w.committed[o] {
				return flawf(Members, "%c is in the ISR, or may be, and has %v at offset %d, where %v is committed", letter(i), p.log[o], o, w.committed[o])
			}
		}
	}
	return nil
}

func (x *Explorer) checkMatching(w *world) *flaw {
	if !x.watched[LogMatching] && !x.watched[Divergence] {
		return nil
	}
	for i := range x.Replicas {
		p := &x.tables.replicas.things[w.replicas[i]]
		for j := range i {
			q := &x.tables.replicas.things[w.replicas[j]]
			same := false
			for o := min(p.leo, q.leo) - 1; o >= 0; o-- {
				same = same || p.log[o].epoch == q.log[o].epoch
				if p.log[o] == q.log[o] {
					continue
				}
				if p.up && q.up && o < min(p.hw, q.hw) && x.watched[Divergence] {
					return flawf(Divergence, "%c and %c hold %v and %v at offset %d, below both high watermarks", letter(j), letter(i), q.log[o], p.log[o], o)
				}
				if same && x.watched[LogMatching] {
					return flawf(LogMatching, "%c and %c agree behind offset %d, and hold %v and %v there", letter(j), letter(i), o, q.log[o], p.log[o])
				}
			}
		}
	}
	return nil
}
