package main

import (
	"flag"
	"io"
	"slices"
	"testing"
	"time"
)

func parse(t *testing.T, args ...string) (plan, error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return parsePlan(f, append(args, "-dir="+t.TempDir()))
}

func TestFullMeansAllSystemsAndLongerRuns(t *testing.T) {
	short, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	full, err := parse(t, "-full", "-repeat=7")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(short.systems, []string{"tidemark"}) || !slices.Equal(full.systems, allSystems) {
		t.Errorf("systems are %v, with -full %v", short.systems, full.systems)
	}
	if short.duration != time.Second || full.duration != 3*time.Second || full.repeat != 7 {
		t.Errorf("runs last %v, with -full %v, repeated %d times", short.duration, full.duration, full.repeat)
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	for _, bad := range []string{"-systems=redis", "-acks=2", "-flush=Always", "-measure=luck", "-sizes=0", "-producers=x", "-repeat=-1"} {
		if _, err := parse(t, bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestAllProducersShareWhatIsUnderWay(t *testing.T) {
	p := plan{inFlightBytes: 8 << 20, inFlightRecords: 1 << 15}
	for _, c := range []struct{ size, producers, want int }{{100, 1, 1 << 15}, {100, 16, 1 << 11}, {1024, 16, 512}, {64 << 10, 16, 8}, {1 << 20, 16, 1}} {
		if got := p.inFlight(c.size, c.producers); got != c.want {
			t.Errorf("%d producers of %d bytes have %d under way each, want %d", c.producers, c.size, got, c.want)
		}
	}
}

func TestTheCommandShownHasNoPlaces(t *testing.T) {
	got := shown([]string{"-replica=/x", "-systems", "nats", "-out", "/y", "-full", "-json=/z"})
	if !slices.Equal(got, []string{"-systems", "nats", "-full"}) {
		t.Errorf("got %v", got)
	}
}
