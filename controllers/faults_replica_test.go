package controllers

import (
	"crypto/sha256"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// replica lets one process do the next thing that the record asks of it.
func (w *simWorld) replica(p *process) bool {
	s, ok := w.record()
	if !ok {
		return false
	}
	r := s.Record
	if r.Recovery != nil {
		return w.report(p, r)
	}
	w.known[p.claim] = r
	q, assigned := r.Replica(p.id)
	switch {
	case !assigned:
		return false
	case q.StartID != p.start:
		return w.register(p)
	case r.Leader == p.id && r.LeaderSession == q.Session:
		return w.lead(r, q)
	}
	return false
}

// report says what the replica knows, once in a round.
func (w *simWorld) report(p *process, r epoch.Record) bool {
	var known *epoch.Record
	if k, ok := w.known[p.claim]; ok {
		known = &k
	}
	return w.write(func(r epoch.Record) (epoch.Record, error) {
		if r.Recovery == nil {
			return r, epoch.ErrNoChange
		}
		return epoch.MarkRecovery(r, epoch.RecoveryOf(p.id, known, 0))
	})
}

func (w *simWorld) register(p *process) bool {
	dir, ok := w.dirs[p.claim]
	if !ok {
		sum := sha256.Sum256([]byte(p.claim))
		copy(dir[:], sum[:])
		w.dirs[p.claim] = dir
	}
	return w.write(func(r epoch.Record) (epoch.Record, error) {
		return epoch.Register(r, epoch.Registration{
			ID: p.id, DirectoryID: dir, VolumeID: dir, StartID: p.start, PodUID: string(p.pod), RestartCount: p.restarts,
			LastEpoch: epoch.NoEpoch, Change: newID(w.t), Now: w.clock.now(),
		})
	})
}

// lead is what a leader does: ISR, requests to hand over, heartbeat.
func (w *simWorld) lead(r epoch.Record, self epoch.Replica) bool {
	live := w.live(r)
	isr, joining := w.wantedISR(r, live)
	if s := r.Switchover; s != nil && s.Session == self.Session {
		return w.write(func(r epoch.Record) (epoch.Record, error) {
			return epoch.Elect(r, epoch.Election{Reason: epoch.ReasonSwitchover, Live: []epoch.ReplicaID{*s.To}, Change: newID(w.t), Now: w.clock.now()})
		})
	}
	tookOver := r.Progress != nil && r.Progress.TookOver == r.LeaderEpoch && slices.Equal(progressIDs(r.Progress), live)
	if !tookOver || w.clock.now().Sub(r.Heartbeat.Renewed) >= heartbeatEvery {
		w.write(func(r epoch.Record) (epoch.Record, error) { return w.renewed(r, live), nil })
		return !tookOver
	}
	if !slices.Equal(isr, r.ISR) || joining {
		return w.write(func(r epoch.Record) (epoch.Record, error) {
			c := epoch.ISRChange{Leader: r.Leader, Session: r.LeaderSession, LeaderEpoch: r.LeaderEpoch, Change: newID(w.t)}
			for _, id := range isr {
				q, _ := r.Replica(id)
				c.ISR = append(c.ISR, epoch.Member{ID: id, Session: q.Session})
			}
			return epoch.ChangeISR(r, c)
		})
	}
	return false
}

func progressIDs(p *epoch.Progress) []epoch.ReplicaID {
	var out []epoch.ReplicaID
	for _, q := range p.Replicas {
		out = append(out, q.ID)
	}
	return out
}

func (w *simWorld) renewed(r epoch.Record, live []epoch.ReplicaID) epoch.Record {
	progress := epoch.Progress{HighWatermark: 10, TookOver: r.LeaderEpoch}
	for _, id := range live {
		progress.Replicas = append(progress.Replicas, epoch.ReplicaProgress{ID: id, LogEndOffset: 10, HighWatermark: 10, LeaderEpoch: r.LeaderEpoch, Live: true})
	}
	return epoch.Renew(r, w.clock.now(), w.rp.EffectiveLeaseDuration(), progress)
}

// live holds the replicas that fetch in the sessions that the record has.
func (w *simWorld) live(r epoch.Record) []epoch.ReplicaID {
	var out []epoch.ReplicaID
	for _, p := range w.running() {
		if q, ok := r.Replica(p.id); ok && q.StartID == p.start {
			out = append(out, p.id)
		}
	}
	return out
}

// wantedISR takes in who is live and out who is not, but never below the minimum.
func (w *simWorld) wantedISR(r epoch.Record, live []epoch.ReplicaID) (isr []epoch.ReplicaID, joining bool) {
	for _, id := range live {
		q, _ := r.Replica(id)
		if r.InSync(id) || !q.Removing && !q.Stopping {
			isr = append(isr, id)
			joining = joining || q.Adding
		}
	}
	for _, id := range r.ISR {
		if len(isr) >= r.MinISRWith(isr) {
			break
		}
		if !slices.Contains(isr, id) {
			isr = append(isr, id)
		}
	}
	slices.Sort(isr)
	return isr, joining
}

// handOver lets a leader that is to stop make room, if it can; it reports whether it has.
func (w *simWorld) handOver(p *process) bool {
	s, ok := w.record()
	if !ok || s.Record.Leader != p.id {
		return false
	}
	for _, id := range w.live(s.Record) {
		if id != p.id && s.Record.InSync(id) {
			return w.write(func(r epoch.Record) (epoch.Record, error) {
				return epoch.HandOver(r, p.id, r.LeaderSession, id, newID(w.t), w.clock.now())
			})
		}
	}
	return false
}

func localVolume(name, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/disk"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	return pv
}

// ownedLists are the kinds of a partition's objects beside pods and claims.
func ownedLists() []client.ObjectList {
	return []client.ObjectList{&coordinationv1.LeaseList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{}}
}
