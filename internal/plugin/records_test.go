package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

func TestProduceAndConsumeThroughTheAPIServer(t *testing.T) {
	p := newPartition(t, 3)
	ns := p.rp.Namespace
	_, errOut, code := run(t, ns, "one\n\nthree", "produce", "orders") // the last line has no end
	if code != 0 || errOut != "3 records written, offsets 0 to 2\n" {
		t.Fatalf("exit status %d: %s", code, errOut)
	}
	_, errOut, code = run(t, ns, "a=1\nb=2=2\n", "produce", "orders", "--key-separator", "=", "--acks", "1")
	if code != 0 || errOut != "2 records written, offsets 3 to 4\n" {
		t.Fatalf("exit status %d: %s", code, errOut)
	}
	if _, errOut, code := run(t, ns, "six\n", "produce", "orders", "--acks=0"); code != 0 || !strings.Contains(errOut, "1 records sent") {
		t.Fatalf("exit status %d: %s", code, errOut)
	}
	p.awaitCommitted(6)
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"everything":     {"", "one\n\nthree\n1\n2=2\nsix\n"},
		"keys, offsets":  {"--print-keys --print-offsets --offset 2", "2\tnull\tthree\n3\ta\t1\n4\tb\t2=2\n5\tnull\tsix\n"},
		"some":           {"--max-messages 2 --from-beginning", "one\n\n"},
		"the last":       {"--offset=-2", "2=2\nsix\n"},
		"more than all":  {"--offset=-100 --max-messages=1", "one\n"},
		"behind the end": {"--offset=6", ""},
	} {
		if got := mustRun(t, ns, "", append([]string{"consume", "orders"}, strings.Fields(c.args)...)...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	mustFail(t, ns, "offset 7 is not there: the log holds offsets from 0 to 6", "consume", "orders", "--offset", "7")
}

func TestConsumeFollowsTheLeaderWhereverItGoes(t *testing.T) {
	p := newPartition(t, 3)
	ns := p.rp.Namespace
	i := begin(t, ns, "", "consume", "orders", "--follow", "--from-beginning")
	for round := range 3 {
		word := fmt.Sprintf("round %d\n", round)
		mustRun(t, ns, word, "produce", "orders")
		await(t, "the record of round "+fmt.Sprint(round), contains(i, word))
		was := p.awaitInSync()
		p.stop(int(was.Leader)) // which hands over
		p.start(int(was.Leader))
		p.awaitInSync()
	}
	i.end()
	if i.code != 0 || i.out.String() != "round 0\nround 1\nround 2\n" {
		t.Errorf("exit status %d: %s%s", i.code, i.out.String(), i.err.String())
	}
}

func TestProduceGivesUpWhenNobodyAnswers(t *testing.T) {
	p := newPartition(t, 1)
	p.stop(0)
	_, errOut, code := run(t, p.rp.Namespace, "one\n", "produce", "orders", "--timeout", "2s")
	if code != 1 || !strings.Contains(errOut, "no record written") || !strings.Contains(errOut, "kubectl tidemark status orders") {
		t.Errorf("exit status %d: %s", code, errOut)
	}
	mustFail(t, p.rp.Namespace, "no replica of orders could do it in time", "consume", "orders", "--timeout", "2s")
}

func TestProduceRefusesLinesWithoutAKey(t *testing.T) {
	p := newPartition(t, 1)
	_, errOut, code := run(t, p.rp.Namespace, "a:1\nb\nc:3\n", "produce", "orders", "--key-separator", ":")
	if code != 1 || !strings.Contains(errOut, "1 records written") || !strings.Contains(errOut, `line 2: there is no ":"`) {
		t.Errorf("exit status %d: %s", code, errOut)
	}
	mustFail(t, p.rp.Namespace, "--acks 2 is not known", "produce", "orders", "--acks", "2")
}

func TestAPartitionWithoutReplicas(t *testing.T) {
	p := newObject(t, nil)
	mustFail(t, p.rp.Namespace, "read the partition record, Lease orders", "produce", "orders")
}

func TestDecodeSkipsWhatWasNotAskedFor(t *testing.T) {
	var log []byte
	log = append(log, batch.NewBuilder().BaseOffset(5).Values("a", "b", "c").Build()...)
	filler, err := batch.Empty(8, 11, 1)
	if err != nil {
		t.Fatal(err)
	}
	log = append(append(log, filler...), batch.NewBuilder().BaseOffset(12).Values("d").Build()...)
	whole := len(log)
	log = append(log, batch.NewBuilder().BaseOffset(13).Values("cut off").Build()[:40]...)
	read := func(log []byte, from int64) (string, int64, error) {
		var got []string
		next, err := decode(log, from, func(r batch.Record) error { got = append(got, fmt.Sprint(r.Offset, string(r.Value))); return nil })
		return strings.Join(got, " "), next, err
	}
	if got, next, err := read(log, 6); err != nil || next != 13 || got != "6b 7c 12d" && got != "6 b 7 c 12 d" {
		t.Errorf("read %s up to %d: %v", got, next, err)
	}
	if _, next, err := read(log[:whole-70], 6); err != nil || next > 12 {
		t.Errorf("a log that is cut off: up to %d, %v", next, err)
	}
	log[len(batch.NewBuilder().BaseOffset(5).Values("a", "b", "c").Build())-1] ^= 1
	if _, _, err := read(log, 5); !errors.Is(err, batch.ErrCorruptMessage) {
		t.Errorf("a byte has changed: %v", err)
	}
}
