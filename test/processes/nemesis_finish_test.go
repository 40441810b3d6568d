package processes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/test/history"
	"github.com/tidemark-io/tidemark/test/prober"
)

// finish ends the load, and checks what clients saw and what replicas hold.
func (r *storm) finish() {
	r.t.Helper()
	end := r.load.stopProducers(r.t)
	// The final read comes last: a request that a producer gave up may have waited in some buffer until now, and be
	// written and shown as long as anybody looks.
	r.load.stopReaders(r.t, end)
	committed := r.committed(1) // not what was acknowledged: if that is lost, the verdict is to say so
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	final, err := prober.ReadAll(ctx, []string{service}, r.p.key.Name, committed, r.p.viaService())
	if err != nil {
		r.t.Error(err) // a log that has lost its end never gets so far; the verdict says what is missing
	}
	verdict := r.load.history.Judge(final, r.load.reads...)
	r.t.Log(verdict)
	r.count(verdict)
	if err := verdict.Err(); err != nil {
		r.t.Error(err)
	}
	r.sameLogs(int64(len(final)))
	r.noPanics()
}

func (r *storm) count(v history.Verdict) {
	for acks, n := range v.Levels {
		for what, m := range map[string]int{"sent": n.Sent, "acked": n.Acked, "failed": n.Failed, "refused": n.Rejected} {
			r.counts[fmt.Sprintf("acks=%s %s", acks, what)] += m
		}
		if acks != history.AcksAll {
			r.counts[fmt.Sprintf("acks=%s acked and lost", acks)] += n.Lost
		}
	}
	r.counts["read in the end"] += v.Read
	r.counts["shown to consumers"] += v.Shown
	r.counts["consumers"] += len(r.load.reads)
	r.counts["violations"] += len(v.Faults)
}

// committed waits until every replica knows its whole log to be committed, all up to the same end, and returns that end.
func (r *storm) committed(least int64) int64 {
	r.t.Helper()
	rp := r.p.await("the spec", func(*v1alpha1.ReplicatedPartition) bool { return true })
	var end int64
	r.p.poll("every replica with everything committed", func() bool {
		all := r.p.kubelet.containers()
		for i, c := range all {
			s, err := c.askStatus(time.Second)
			if err != nil || s.HighWatermark != s.LogEndOffset || s.LogEndOffset < least || i > 0 && s.LogEndOffset != end {
				return false
			}
			end = s.LogEndOffset
		}
		return len(all) == rp.EffectiveReplicas()
	})
	return end
}

// sameLogs compares the files of the replicas, once all have the whole log.
func (r *storm) sameLogs(end int64) {
	r.t.Helper()
	r.committed(end)
	all := r.p.kubelet.containers()
	var first []byte
	for i, c := range all {
		content, err := wholeLog(c.volume)
		if err != nil {
			r.t.Fatal(err)
		}
		if i == 0 {
			first = content
		} else if !bytes.Equal(content, first) {
			r.t.Errorf("the logs of %s (%d bytes) and %s (%d bytes) differ from byte %d on", all[0].name, len(first), c.name, len(content), differ(first, content))
		}
	}
	r.counts["bytes compared"] += len(first) * len(all)
}

// wholeLog is the content of all segments. Replicas may cut it into segments at different places.
func wholeLog(volume string) ([]byte, error) {
	files, err := logFiles(volume)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// noPanics looks for what a process must never print.
func (r *storm) noPanics() {
	r.t.Helper()
	for _, name := range r.p.logFiles() {
		b, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, bad := range []string{"\npanic: ", "fatal error: ", "WARNING: DATA RACE", "Observed a panic"} {
			if i := strings.Index(string(b), bad); i >= 0 {
				r.t.Errorf("%s: %s", filepath.Base(name), b[i:min(len(b), i+4000)])
			}
		}
	}
}

// delete takes the partition and its pods away.
func (p *partition) delete() {
	p.t.Helper()
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}}
	if err := env.api.Delete(p.t.Context(), rp); err != nil {
		p.t.Fatal(err)
	}
	p.poll("no pods", func() bool {
		for _, c := range p.kubelet.containers() {
			_ = env.clientset.CoreV1().Pods(p.key.Namespace).Delete(p.t.Context(), c.name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}) // tried again
		}
		return len(p.kubelet.containers()) == 0
	})
}
