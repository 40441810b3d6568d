package volume

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

func TestAnImportIsToldUntilItsFirstStart(t *testing.T) {
	m := vfs.NewMem()
	if err := m.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Imported(m, "/data"); ok || err != nil {
		t.Fatalf("of an empty directory: %t, %v", ok, err)
	}
	want := Import{Topic: "orders", TopicID: epoch.UUID{7}, Replica: 2, LeaderEpoch: 5, ProducerID: 1 << 40}
	if err := Identify(m, "/data", want); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := Imported(m, "/data"); got != want || !ok || err != nil {
		t.Fatalf("got %+v, %t, %v", got, ok, err)
	}
	if err := Identify(m, "/data", want); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second identity: %v", err)
	}
	v, err := Open(Config{Dir: "/data", Topic: "orders", TopicID: epoch.UUID{7}, ReplicaID: 2, FS: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Imported(m, "/data"); !ok || err != nil {
		t.Errorf("before the record is there: %t, %v", ok, err)
	}
	// What a start without proof does.
	if _, err := v.NewDirectoryID(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Imported(m, "/data"); ok || err != nil {
		t.Errorf("after the first start: %t, %v", ok, err)
	}
}
