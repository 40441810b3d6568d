package log

import (
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// mutated are the files that FuzzVerify changes; the others stay as they were.
var mutated = []string{
	"orders-0/00000000000000000000.log", "orders-0/00000000000000000008.log", "orders-0/00000000000000000016.log",
	"orders-0/00000000000000000000.index", "orders-0/00000000000000000000.timeindex", "orders-0/00000000000000000016.index",
	"orders-0/00000000000000000016.timeindex", "orders-0/00000000000000000024.snapshot", "orders-0/" + epochFile,
	"orders-0/" + metadataFile, highWatermarkFile, recoveryPointFile, logStartFile, cleanFile,
}

// A step of a mutation: which file, what, where (two bytes), with which byte.
const mutationStep = 5

// mutate changes the directory as the steps say.
func mutate(dir fstest.MapFS, steps []byte) {
	steps = steps[:min(len(steps), 8*mutationStep)]
	for ; len(steps) >= mutationStep; steps = steps[mutationStep:] {
		name := mutated[int(steps[0])%len(mutated)]
		f, ok := dir[name]
		if !ok {
			continue
		}
		b, at, with := f.Data, int(steps[2])<<8|int(steps[3]), steps[4]
		if at > len(b) {
			at = len(b)
		}
		switch steps[1] % 6 {
		case 0: // another byte
			if at < len(b) {
				b[at] = with
			}
		case 1:
			b = b[:at]
		case 2:
			b = append(b, make([]byte, with)...)
		case 3:
			b = append(b, b[:at]...)
		case 4: // a hole
			b = append(b[:at:at], b[min(at+int(with), len(b)):]...)
		case 5:
			delete(dir, name)
			continue
		}
		dir[name] = &fstest.MapFile{Data: b}
	}
}

var pristine = sync.OnceValue(func() map[string][]byte {
	t := &testing.T{}
	out := map[string][]byte{}
	for name, f := range readOnly(t, rich(t)) {
		out[name] = f.Data
	}
	return out
})

// FuzzVerify looks at directories that are damaged somehow: no panic, and a directory in
// which nothing is found wrong is one that a start, which reads everything, takes as it is.
func FuzzVerify(f *testing.F) {
	for i := range mutated {
		for op := range 6 {
			f.Add([]byte{byte(i), byte(op), 0, 16, 1})
		}
	}
	f.Add([]byte{})
	f.Add([]byte{13, 5, 0, 0, 0, 2, 1, 0, 70, 0, 11, 5, 0, 0, 0}) // crashed, and torn
	f.Add([]byte{13, 5, 0, 0, 0, 2, 2, 0, 0, 90, 11, 5, 0, 0, 0}) // crashed, and zeros
	f.Fuzz(func(t *testing.T, steps []byte) {
		dir := fstest.MapFS{}
		for name, b := range pristine() {
			dir[name] = &fstest.MapFile{Data: append([]byte(nil), b...)}
		}
		mutate(dir, steps)
		found, sum := verify(t, dir)
		if sum.Errors > 0 {
			return
		}
		m := onDisk(t, dir)
		l, r, err := Open(m, dataDir, config(), false, logr.Discard())
		if err != nil {
			t.Fatalf("nothing is wrong, and it does not open: %v\n%s", err, lines(found))
		}
		if r.CutAt != epoch.NoOffset && !r.OnlyTornTail || r.EpochContradiction {
			t.Fatalf("nothing is wrong, and it was cut: %+v\n%s", r, lines(found))
		}
		if l.StartOffset() != sum.Start || l.EndOffset() != sum.End {
			t.Fatalf("log [%d, %d), verified [%d, %d)\n%s", l.StartOffset(), l.EndOffset(), sum.Start, sum.End, lines(found))
		}
		readAll(t, l)
	})
}

// onDisk is the directory on a file system that can be written.
func onDisk(t *testing.T, dir fstest.MapFS) *vfs.Mem {
	t.Helper()
	m := newMem(t)
	must(t, m.MkdirAll(dataDir+"/orders-0"))
	for name, f := range dir {
		if !strings.Contains(name, "/") || strings.HasPrefix(name, "orders-0/") {
			overwrite(t, m, path.Join(dataDir, name), f.Data)
		}
	}
	return m
}
