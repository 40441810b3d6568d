package volume

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

var topicID = epoch.UUID{1}

func config(dir string) Config {
	return Config{Dir: dir, Topic: "orders", TopicID: topicID, ReplicaID: 2, BootID: "boot", PodUID: "pod"}
}

func opened(t *testing.T, cfg Config) *Volume {
	t.Helper()
	v, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func reopened(t *testing.T, v *Volume) *Volume {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, v.cfg)
}

func write(t *testing.T, text string, elements ...string) {
	t.Helper()
	name := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fill gives a volume a log of that topic id, and every file that speaks about it.
func fill(t *testing.T, dir, partition string, owner epoch.UUID) {
	t.Helper()
	write(t, "version: 0\ntopic_id: "+owner.String()+"\n", dir, partition, "partition.metadata")
	write(t, "data", dir, partition, "00000000000000000000.log")
	for _, name := range companions {
		write(t, "0\n0\n", dir, name)
	}
}

func quarantined(t *testing.T, dir string) []string {
	t.Helper()
	names, err := vfs.OS{}.List(filepath.Join(dir, quarantineDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func TestOpenKeepsTheIdentityOfAVolume(t *testing.T) {
	dir := t.TempDir()
	v := opened(t, config(dir))
	directory, volume := v.DirectoryID(), v.VolumeID()
	if directory.IsZero() || volume.IsZero() || directory == volume || !v.fresh {
		t.Fatalf("new volume: directory id %s, volume id %s, fresh %v", directory, volume, v.fresh)
	}
	fill(t, dir, "orders-0", topicID)
	v = reopened(t, v)
	if v.DirectoryID() != directory || v.VolumeID() != volume || v.fresh {
		t.Errorf("directory id %s → %s, volume id %s → %s, fresh %v", directory, v.DirectoryID(), volume, v.VolumeID(), v.fresh)
	}
	if q := quarantined(t, dir); len(q) > 0 {
		t.Errorf("own data were set aside: %q", q)
	}
	text, err := os.ReadFile(filepath.Join(dir, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version=1\n", "node.id=2\n", "cluster.id=" + topicID.String(), "directory.id=" + directory.String()} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%q is not in %q", line, text)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	v := opened(t, config(dir))
	if _, err := Open(config(dir)); err == nil || !strings.Contains(err.Error(), "another process holds the volume's lock") {
		t.Errorf("a locked volume: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, about string
		edit        func(*Config)
	}{
		{"another replica's volume", "belongs to replica 2 of topic orders", func(c *Config) { c.ReplicaID = 0 }},
		{"another topic's volume", "belongs to topic orders, and this is topic bills", func(c *Config) { c.Topic = "bills" }},
		{"another topic's volume of a new object", "belongs to topic orders", func(c *Config) { c.Topic, c.TopicID = "bills", epoch.UUID{2} }},
		{"no topic id", "are all needed", func(c *Config) { c.TopicID = epoch.UUID{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(dir)
			c.edit(&cfg)
			if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), c.about) {
				t.Errorf("got %v, want an error about %q", err, c.about)
			}
		})
	}
	if v := opened(t, config(dir)); v.fresh {
		t.Error("a refused start changed the volume")
	}
}

func TestOpenSetsAsideWhatIsNotItsOwn(t *testing.T) {
	old := epoch.UUID{9}
	for _, c := range []struct {
		name  string
		setup func(t *testing.T, dir string)
		want  []string // under quarantine/
	}{
		{"data of another topic id", func(t *testing.T, dir string) {
			reopenedAs(t, dir, old)
			fill(t, dir, "orders-0", old)
		}, []string{"files", "orders-0." + old.String()}},
		{"data of another topic id under our own identity", func(t *testing.T, dir string) {
			reopenedAs(t, dir, topicID)
			fill(t, dir, "orders-0", old)
		}, []string{"files", "orders-0." + old.String()}},
		{"a second time the same", func(t *testing.T, dir string) {
			reopenedAs(t, dir, old)
			fill(t, dir, "orders-0", old)
			write(t, "", dir, quarantineDir, "orders-0."+old.String(), "x")
			write(t, "", dir, quarantineDir, "files", "x")
		}, []string{"files", "files.1", "orders-0." + old.String(), "orders-0." + old.String() + ".1"}},
		{"data without identity (KAFKA-16814)", func(t *testing.T, dir string) { fill(t, dir, "orders-0", topicID) },
			[]string{"files", "orders-0." + topicID.String()}},
		{"data with a broken identity", func(t *testing.T, dir string) {
			fill(t, dir, "orders-0", topicID)
			write(t, "version=1\nnode", dir, "meta.properties")
		}, []string{"files", "orders-0." + topicID.String()}},
		{"data that do not say whose they are", func(t *testing.T, dir string) {
			reopenedAs(t, dir, topicID)
			write(t, "data", dir, "orders-0", "00000000000000000000.log")
		}, []string{"orders-0.unknown"}},
		{"only files were left by a crash in between", func(t *testing.T, dir string) {
			reopenedAs(t, dir, old)
			write(t, "0\n1\norders 0 500\n", dir, "log-start-offset-checkpoint")
		}, []string{"files"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.setup(t, dir)
			before, _ := os.ReadFile(filepath.Join(dir, metaFile))
			v := opened(t, config(dir))
			if got := quarantined(t, dir); !slices.Equal(got, c.want) {
				t.Errorf("quarantine holds %q, want %q", got, c.want)
			}
			if !v.fresh || strings.Contains(string(before), v.DirectoryID().String()) {
				t.Error("the directory id was kept")
			}
			if v.id.topicID != topicID {
				t.Errorf("the volume is of topic id %s", v.id.topicID)
			}
			names, err := vfs.OS{}.List(dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{".lock", metaFile, quarantineDir}; !slices.Equal(names, want) {
				t.Errorf("the volume holds %q, want %q", names, want)
			}
			id := v.DirectoryID()
			if again := reopened(t, v); again.DirectoryID() != id {
				t.Error("the next start draws another id")
			}
		})
	}
}

// reopenedAs makes the volume one of that topic id.
func reopenedAs(t *testing.T, dir string, id epoch.UUID) {
	t.Helper()
	cfg := config(dir)
	cfg.TopicID = id
	if err := opened(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenLeavesOwnDataWhenOnlyAStrayGoes(t *testing.T) {
	dir := t.TempDir()
	v := opened(t, config(dir))
	fill(t, dir, "orders-0", topicID)
	write(t, "version: 0\ntopic_id: "+epoch.UUID{7}.String()+"\n", dir, "bills-0", "partition.metadata")
	id := v.DirectoryID()
	v = reopened(t, v)
	if v.DirectoryID() != id {
		t.Error("the directory id was not kept")
	}
	if got, want := quarantined(t, dir), []string{"bills-0." + epoch.UUID{7}.String()}; !slices.Equal(got, want) {
		t.Errorf("quarantine holds %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, recordFile)); err != nil {
		t.Error(err)
	}
}

func TestQuarantineGoesOnAfterAnyFailedStep(t *testing.T) {
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		fill(t, dir, "orders-0", epoch.UUID{9})
		steps := 0
		fsys := failing{vfs.OS{}, func() error {
			if steps++; steps == fail {
				return syscall.EIO
			}
			return nil
		}}
		cfg := config(dir)
		if _, err := open(cfg, fsys); err == nil {
			if fail < 5 {
				t.Fatalf("only %d steps", fail)
			}
			return
		}
		opened(t, cfg)
		left, err := vfs.OS{}.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{".lock", metaFile, quarantineDir}; !slices.Equal(left, want) {
			t.Errorf("after a failure at step %d the volume holds %q, want %q", fail, left, want)
		}
	}
}

// failing asks before every step that changes a name.
type failing struct {
	vfs.FS
	ask func() error
}

func (f failing) Rename(from, to string) error {
	if err := f.ask(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f failing) SyncDir(dir string) error {
	if err := f.ask(); err != nil {
		return err
	}
	return f.FS.SyncDir(dir)
}

func TestRecordOnTheVolume(t *testing.T) {
	v := opened(t, config(t.TempDir()))
	if r, err := v.LoadRecord(); r != nil || err != nil {
		t.Errorf("before any: %+v, %v", r, err)
	}
	want := epoch.New(topicID, []epoch.ReplicaID{0, 1, 2}, 2, "c1")
	kept := want
	kept.Progress = &epoch.Progress{HighWatermark: 5}
	if err := v.PersistRecord(kept); err != nil {
		t.Fatal(err)
	}
	if got, err := v.LoadRecord(); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "{", `{"version":2}`} {
		write(t, text, v.cfg.Dir, recordFile)
		if r, err := v.LoadRecord(); err == nil {
			t.Errorf("a file %q was read as %+v", text, r)
		}
	}
}

func FuzzParseIdentity(f *testing.F) {
	f.Add(identity{"orders", topicID, 2, dirA, dirB}.format())
	f.Add([]byte("version=1\nnode.id=-1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		have, err := parseIdentity(b)
		if err != nil {
			return
		}
		if again, err := parseIdentity(have.format()); err != nil || again != have {
			t.Fatalf("got %+v, %v, want %+v", again, err, have)
		}
	})
}

func FuzzParseCleanMark(f *testing.F) {
	f.Add([]byte(`{"version":0,"brokerEpoch":3,"startID":"s"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m := parseCleanMark(b); m != nil && m.Session < 0 {
			t.Fatalf("%q is read as %+v", b, m)
		}
	})
}
