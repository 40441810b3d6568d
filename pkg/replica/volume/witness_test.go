package volume

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// tmpfs is a fresh directory in memory.
func tmpfs(t testing.TB) string {
	t.Helper()
	if err := onTmpfs("/dev/shm"); err != nil {
		t.Skip("no tmpfs to test on: ", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "tidemark-witness-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func armed(t testing.TB, dir string, p Position) *witnessFile {
	t.Helper()
	f, _, missing := openWitness(dir)
	if f == nil {
		t.Fatal(missing)
	}
	t.Cleanup(func() { _ = f.close() })
	if err := f.replace(Witness{BootID: "boot", PodUID: "pod", DirectoryID: dirA, StartID: "s1", Position: p}); err != nil {
		t.Fatal(err)
	}
	return f
}

func found(t testing.TB, dir string) Witness {
	t.Helper()
	f, w, missing := openWitness(dir)
	if w == nil {
		t.Fatal(missing)
	}
	_ = f.close()
	return *w
}

func TestWitnessSaysWhatWasRaisedLast(t *testing.T) {
	dir := tmpfs(t)
	f := armed(t, dir, Position{LogEndOffset: 5})
	want := Witness{BootID: "boot", PodUID: "pod", DirectoryID: dirA, StartID: "s1", Position: Position{LogEndOffset: 5}}
	if got := found(t, dir); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range 5 {
		want.Position = Position{epoch.Offset(10 - i), 3, uint32(i)}
		f.put(want.Position)
		if got := found(t, dir); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	f.markError()
	want.Failed = true
	if got := found(t, dir); got != want {
		t.Errorf("after an error: got %+v, want %+v", got, want)
	}
	want.Position = Position{20, 4, 4}
	f.put(want.Position)
	if got := found(t, dir); got != want {
		t.Errorf("raised after an error: got %+v, want %+v", got, want)
	}
	if err := f.replace(want); err == nil {
		t.Error("a process that saw an error made a new witness")
	}
}

func TestWitnessOfTheProcessBeforeIsReadAndNotWritten(t *testing.T) {
	dir := tmpfs(t)
	if err := armed(t, dir, lastBatch).close(); err != nil {
		t.Fatal(err)
	}
	f, w, _ := openWitness(dir)
	if w == nil || w.Position != lastBatch {
		t.Fatalf("got %+v", w)
	}
	f.put(Position{LogEndOffset: 999, LeaderEpoch: 9})
	if got := found(t, dir); got.Position != lastBatch {
		t.Errorf("a process wrote over the witness of the one before: %+v", got)
	}
	f.markError()
	if got := found(t, dir); !got.Failed || got.Position != lastBatch {
		t.Errorf("an error before Arm: got %+v", got)
	}
	_ = f.close()
	f.put(lastBatch) // after close: nothing, and no fault
	f.markError()
}

func TestATornSlotLeavesTheOther(t *testing.T) {
	dir := tmpfs(t)
	f := armed(t, dir, Position{LogEndOffset: 1})
	f.put(Position{LogEndOffset: 2, LeaderEpoch: 1, CRC: 2})
	name := filepath.Join(dir, witnessName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range 2 * slotSize {
		b := bytes.Clone(whole)
		b[at] ^= 0x55
		w, _, ok := newest(b)
		if !ok || w.LogEndOffset != 1 && w.LogEndOffset != 2 {
			t.Fatalf("byte %d flipped: %+v, %v", at, w, ok)
		}
	}
	for size := range len(whole) {
		newest(whole[:size]) // no size is a reason to panic
	}
	for _, text := range []string{"", "short", string(make([]byte, witnessSize))} {
		write(t, text, name)
		if _, w, missing := openWitness(dir); w != nil || missing == "" {
			t.Errorf("a file of %d bytes: %+v", len(text), w)
		}
	}
}

func TestNoWitnessWithoutTmpfs(t *testing.T) {
	for dir, about := range map[string]string{"": "no directory", "/proc": "not on tmpfs", "/does/not/exist": "look at the file system"} {
		if f, w, missing := openWitness(dir); f != nil || w != nil || !strings.Contains(missing, about) {
			t.Errorf("%q: %v, %v, %q", dir, f, w, missing)
		}
	}
}

func TestTextsThatDoNotFitAreRefused(t *testing.T) {
	f, _, _ := openWitness(tmpfs(t))
	if err := f.replace(Witness{PodUID: strings.Repeat("x", textSize+1)}); err == nil {
		t.Error("no error")
	}
}

func TestRaiseDoesNotAllocate(t *testing.T) {
	f := armed(t, tmpfs(t), Position{})
	if n := testing.AllocsPerRun(100, func() { f.put(lastBatch) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRaise(b *testing.B) {
	f := armed(b, tmpfs(b), Position{})
	b.ReportAllocs()
	for i := range b.N {
		f.put(Position{epoch.Offset(i), 3, uint32(i)})
	}
}

const helperDir = "TIDEMARK_TEST_WITNESS"

// crcOf makes each position one that can be checked by itself.
func crcOf(o epoch.Offset) uint32 { return crc32.ChecksumIEEE([]byte(strconv.FormatInt(int64(o), 10))) }

// TestMain runs the process that a test kills.
func TestMain(m *testing.M) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	f, _, missing := openWitness(dir)
	if f == nil || f.replace(Witness{BootID: "boot", StartID: "s", DirectoryID: dirA}) != nil {
		panic(missing)
	}
	for o := epoch.Offset(1); ; o++ {
		f.put(Position{o, epoch.LeaderEpoch(o%1000 + 1), crcOf(o)})
	}
}

// A kill -9 at any moment leaves a whole state.
func TestAKillNeverTearsTheWitness(t *testing.T) {
	dir := tmpfs(t)
	for round := range 15 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperDir+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Wait until it is in the loop; then some more, by work and not by the clock.
		target := epoch.Offset(1000 + rand.N(5000))
		deadline := time.Now().Add(time.Minute)
		for {
			if f, w, _ := openWitness(dir); w != nil {
				_ = f.close()
				if w.LogEndOffset >= target {
					break
				}
			}
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatal("the process does not raise its witness")
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w := found(t, dir)
		if w.LogEndOffset < target || w.CRC != crcOf(w.LogEndOffset) || w.LeaderEpoch != epoch.LeaderEpoch(w.LogEndOffset%1000+1) {
			t.Fatalf("round %d: %+v is no state that was raised", round, w)
		}
		if err := os.Remove(filepath.Join(dir, witnessName)); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzNewest(f *testing.F) {
	b := make([]byte, witnessSize)
	_ = encodeSlot(b, Witness{BootID: "boot", StartID: "s"})
	seal(b[:slotSize], 1)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		w, _, ok := newest(b)
		if !ok {
			return
		}
		slot := make([]byte, slotSize)
		if err := encodeSlot(slot, w); err != nil {
			t.Fatal(err)
		}
		seal(slot, 1)
		if got, _, ok := decodeSlot(slot); !ok || got != w {
			t.Fatalf("got %+v, want %+v", got, w)
		}
	})
}
