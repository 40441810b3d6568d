package node

import (
	"errors"
	"testing"
)

// A leader that stops without a successor tells a last time how far it came: should its
// volume be lost before it is back, the record says what went with it.
func TestALeaderThatStopsAloneTellsItsHighWatermark(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	w.run("a heartbeat", func() bool { return w.record.Record.Progress != nil })
	for range 3 {
		must(t, p.produce("since").Err)
	}
	if hw := w.record.Record.Progress.HighWatermark; hw == 3 {
		t.Fatalf("the record knows the high watermark already: nothing is tested")
	}
	must(t, p.stop())
	if hw := w.record.Record.Progress.HighWatermark; hw != 3 {
		t.Errorf("the record has the high watermark %d, want 3", hw)
	}
}

// The API server is away: one attempt is enough.
func TestALeaderThatStopsAloneDoesNotWaitForTheAPIServer(t *testing.T) {
	w := newWorld(t, 1, 1, nil)
	p := w.procs[0]
	must(t, p.start())
	w.run("it to lead", w.leads(0))
	w.fail = errors.New("no answer")
	p.n.Stop()
	for range 5 {
		w.step()
	}
	if !p.n.Released() {
		t.Error("it waits for the API server")
	}
}
