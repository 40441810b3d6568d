package controllers

import (
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// copies remembers how far behind replicas were that copy the log, to tell how long they
// will take. It is only told to people.
type copies struct {
	now func() time.Time

	mu    sync.Mutex
	begun map[types.UID]map[epoch.ReplicaID]behind
}

// longestCopy is from when on it is not told how long one will take: it hardly moves, as when
// as much is written as is copied, and the number says nothing.
const longestCopy = 1000 * time.Hour

// behind is how many bytes a replica had to copy at a moment.
type behind struct {
	bytes   int64
	session epoch.Session
	at      time.Time
}

func newCopies() *copies {
	return &copies{now: time.Now, begun: map[types.UID]map[epoch.ReplicaID]behind{}}
}

// observe takes note of a partition's progress, and tells how long those that copy will
// take at the speed that they have had so far, against what is written meanwhile.
func (c *copies) observe(of types.UID, p *epoch.Progress) map[epoch.ReplicaID]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, begun := c.now(), map[epoch.ReplicaID]behind{}
	var left map[epoch.ReplicaID]time.Duration
	for _, q := range copying(p) {
		from, ok := c.begun[of][q.ID]
		if !ok || from.session != q.Session || from.bytes <= q.BytesBehind {
			begun[q.ID] = behind{q.BytesBehind, q.Session, now}
			continue
		}
		begun[q.ID] = from
		takes := float64(now.Sub(from.at)) * float64(q.BytesBehind) / float64(from.bytes-q.BytesBehind)
		if takes > float64(longestCopy) {
			continue
		}
		if left == nil {
			left = map[epoch.ReplicaID]time.Duration{}
		}
		left[q.ID] = time.Duration(takes)
	}
	if c.begun[of] = begun; len(begun) == 0 {
		delete(c.begun, of)
	}
	return left
}

func (c *copies) forget(of types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.begun, of)
}

// copying are the replicas that are not in sync and fetch.
func copying(p *epoch.Progress) []epoch.ReplicaProgress {
	if p == nil {
		return nil
	}
	var out []epoch.ReplicaProgress
	for _, q := range p.Replicas {
		if q.BytesBehind > 0 {
			out = append(out, q)
		}
	}
	return out
}

// stillToCopy is where the moving numbers in the message of a condition begin.
const stillToCopy = "; still to copy: "

// tellCopying is what a replica has still to copy, "" if it copies nothing.
func (o *Observation) tellCopying(id epoch.ReplicaID) string {
	p, ok := progressOf(o.Record.Progress, id)
	if !ok || p.BytesBehind <= 0 || o.Record.InSync(id) {
		return ""
	}
	text := stillToCopy + "about " + tellBytes(p.BytesBehind)
	if left, ok := o.Left[id]; ok {
		text += fmt.Sprintf(", %s at this speed", max(left.Round(time.Second), time.Second))
	}
	return text
}

// withoutCopying is a message without what moves with every look.
func withoutCopying(message string) string {
	before, _, _ := strings.Cut(message, stillToCopy)
	return before
}

func tellBytes(n int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n >= 10*gib:
		return fmt.Sprintf("%d GiB", n/gib)
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d KiB", (n+kib-1)/kib)
}

// planCopying tells of a replica that is at work and has still to copy the log.
func planCopying(o *Observation, p *Plan) {
	for _, q := range o.Record.Replicas {
		if text := o.tellCopying(q.ID); text != "" {
			p.note(metav1.ConditionTrue, v1alpha1.ReasonCatchingUp, "%s is not in sync and copies the log from %s%s",
				o.Partition.ReplicaName(int32(q.ID)), o.Partition.ReplicaName(int32(o.Record.Leader)), text)
		}
	}
}
