package processes

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/test/nemesis"
	"github.com/tidemark-io/tidemark/test/network"
)

var (
	nemesisDuration = flag.Duration("nemesis.duration", time.Minute, "how long TestNemesis goes on; the round that is under way then is finished")
	nemesisSeed     = flag.Uint64("nemesis.seed", 0, "seed of TestNemesis; 0 draws one")
	nemesisRound    = flag.Uint64("nemesis.round", 0, "number of its first round")
	nemesisKinds    = flag.String("nemesis.kinds", "", "the only kinds of faults, separated by commas; all when empty")
	nemesisKeep     = flag.String("nemesis.keep", "", "directory for what a round that failed leaves: histories, logs, volumes; one of the system's for temporary files when empty")
)

const (
	// roundLength is how long the faults of one round go on, calmEvery how often they are healed for a moment.
	roundLength = time.Minute
	calmEvery   = 20 * time.Second
)

// TestNemesis lets everything go wrong that can, under producers and consumers of all kinds, heals it, and checks
// what the clients saw and what the replicas hold. It ends at the first round that fails.
func TestNemesis(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || env == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	if env.network == nil {
		t.Skip(network.Missing())
	}
	seed := *nemesisSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d; to repeat it: make nemesis DURATION=%s SEED=%d", seed, *nemesisDuration, seed)
	begun := time.Now()
	total := tally{}
	for n := *nemesisRound; ; n++ {
		length := min(roundLength, *nemesisDuration)
		ok := t.Run(fmt.Sprintf("round-%d", n), func(t *testing.T) { runRound(t, seed, n, length, total) })
		fmt.Printf("nemesis: seed %d, %d rounds in %s: %s\n", seed, n-*nemesisRound+1, time.Since(begun).Round(time.Second), total)
		if !ok || time.Since(begun) >= *nemesisDuration {
			break
		}
	}
	t.Logf("%s of seed %d: %s", time.Since(begun).Round(time.Second), seed, total)
}

// tally counts faults and operations.
type tally map[string]int

func (c tally) add(more tally) {
	for name, n := range more {
		c[name] += n
	}
}

// String is all faults, and then all operations.
func (c tally) String() string {
	var faults, operations []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if kind, ok := strings.CutPrefix(name, faultPrefix); ok {
			faults = append(faults, fmt.Sprintf("%s %d", kind, c[name]))
		} else {
			operations = append(operations, fmt.Sprintf("%s %d", name, c[name]))
		}
	}
	return fmt.Sprintf("faults: %s; operations: %s", strings.Join(faults, ", "), strings.Join(operations, ", "))
}

// faultPrefix begins the names of what counts faults of one kind.
const faultPrefix = "fault "

// runRound is the life of one partition.
func runRound(t *testing.T, seed, number uint64, length time.Duration, total tally) {
	var only []nemesis.Kind
	for k := range strings.FieldsFuncSeq(*nemesisKinds, func(r rune) bool { return r == ',' }) {
		only = append(only, nemesis.Kind(k))
	}
	plan := nemesis.NewRound(seed, number, only...)
	t.Logf("seed %d round %d: %s", seed, number, plan)
	p := newPartition(t, specOf(plan.Shape))
	r := newStorm(t, p, plan)
	t.Cleanup(func() {
		if t.Failed() {
			r.keep(fmt.Sprintf("seed-%d-round-%d", seed, number))
		}
	})
	r.load = startNemesisLoad(p)
	r.strike(length)
	r.healAll()
	r.calm("every replica in sync at the end")
	r.finish()
	total.add(r.counts)
	t.Logf("seed %d round %d: %s", seed, number, r.counts)
	p.delete()
}

func specOf(s nemesis.Shape) v1alpha1.ReplicatedPartitionSpec {
	spec := v1alpha1.ReplicatedPartitionSpec{
		Replicas: int32(s.Replicas), MinInSyncReplicas: ptr.To(int32(s.MinISR)),
		Storage:        v1alpha1.StorageSpec{Size: resource.MustParse("1Gi")},
		Log:            v1alpha1.LogSpec{SegmentBytes: s.SegmentBytes, MaxMessageBytes: 1 << 20},
		Replication:    v1alpha1.ReplicationSpec{LagTimeMaxSeconds: int32(s.LagSeconds)},
		LeaderElection: v1alpha1.LeaderElectionSpec{LeaseDurationSeconds: int32(s.LeaseSeconds)},
	}
	if s.EveryBatch {
		spec.Log.Flush = v1alpha1.FlushEveryBatch
	}
	return spec
}

// keep saves what a failed round leaves, for the search for its cause.
func (r *storm) keep(name string) {
	parent := *nemesisKeep
	if parent == "" {
		parent = os.TempDir()
	}
	dir := filepath.Join(parent, "tidemark-nemesis-"+name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { // an older one is of the same seed
		r.t.Log(err)
		return
	}
	for _, f := range r.p.logFiles() {
		if b, err := os.ReadFile(f); err == nil {
			_ = os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o644)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "volumes"), os.DirFS(r.p.kubelet.volumes)); err != nil {
		r.t.Log(err) // replicas still write there
	}
	_ = os.WriteFile(filepath.Join(dir, "faults.txt"), []byte(r.journal.String()), 0o644)
	if r.load != nil {
		r.load.keep(dir)
	}
	r.t.Logf("history, logs and volumes are in %s", dir)
}
