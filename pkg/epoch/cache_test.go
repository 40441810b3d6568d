package epoch

import "testing"

func cacheOf(t *testing.T, pairs ...int) Cache {
	t.Helper()
	var entries []Entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, Entry{LeaderEpoch(pairs[i]), Offset(pairs[i+1])})
	}
	c, err := NewCache(entries)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The ids are those of the cache table of the protocol notes (KIP-101 and later).
func TestCacheChanges(t *testing.T) {
	assign := func(e LeaderEpoch, o Offset) func(*Cache) { return func(c *Cache) { c.Assign(e, o) } }
	fromEnd := func(o Offset) func(*Cache) { return func(c *Cache) { c.TruncateFromEnd(o) } }
	fromStart := func(o Offset) func(*Cache) { return func(c *Cache) { c.TruncateFromStart(o) } }
	both := func(end, start Offset) func(*Cache) {
		return func(c *Cache) { c.TruncateFromEnd(end); c.TruncateFromStart(start) }
	}
	for _, tc := range []struct {
		name   string
		before []int
		change func(*Cache)
		want   string
	}{
		{"E1 first epoch", nil, assign(0, 0), "{0:0}"},
		{"E2 same epoch later", []int{0, 0}, assign(0, 7), "{0:0}"},
		{"E3 an empty epoch is replaced", []int{0, 0, 1, 5}, assign(2, 5), "{0:0,2:5}"},
		{"E4 later starts are dropped", []int{0, 0, 1, 5, 2, 9}, assign(2, 7), "{0:0,1:5,2:7}"},
		{"E5 the epoch goes back", []int{0, 0, 3, 5}, assign(2, 8), "{0:0,2:8}"},
		{"E7 cut at a start", []int{0, 0, 1, 5, 2, 9}, fromEnd(9), "{0:0,1:5}"},
		{"E7 cut at an earlier start", []int{0, 0, 1, 5, 2, 9}, fromEnd(5), "{0:0}"},
		{"E7 cut inside of the first", []int{0, 0, 1, 5, 2, 9}, fromEnd(4), "{0:0}"},
		{"E8 start moves into an epoch", []int{0, 0, 1, 5, 2, 9}, fromStart(7), "{1:7,2:9}"},
		{"E8 start moves to a start", []int{0, 0, 1, 5, 2, 9}, fromStart(9), "{2:9}"},
		{"E8 start moves past all", []int{0, 0, 1, 5, 2, 9}, fromStart(12), "{2:12}"},
		{"E9 the empty log's epoch is cut", []int{2, 12}, fromEnd(12), "{}"},
		{"E10 load after recovery", []int{0, 0, 1, 5, 2, 9}, both(7, 6), "{1:6}"},
		{"E12 cleared", []int{5, 100}, (*Cache).Clear, "{}"},
		{"U10 an epoch without records ends at the log end", []int{1, 0, 2, 10}, fromEnd(10), "{1:0}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cacheOf(t, tc.before...)
			tc.change(&c)
			if got := c.String(); got != tc.want {
				t.Errorf("cache after the change: %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCacheEndOffset(t *testing.T) {
	c := cacheOf(t, 1, 0, 3, 10)
	for _, tc := range []struct {
		name      string
		epoch     LeaderEpoch
		wantEpoch LeaderEpoch
		wantEnd   Offset
	}{
		{"E6 the newest epoch ends with the log", 3, 3, 15},
		{"E6 a skipped epoch is answered by the one before", 2, 1, 10},
		{"E6 an old epoch ends where the next began", 1, 1, 10},
		{"E6 before the first epoch", 0, 0, 0},
		{"E6 an epoch from the future", 4, NoEpoch, NoOffset},
		{"E6 none", NoEpoch, NoEpoch, NoOffset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if e, end := c.EndOffset(tc.epoch, 15); e != tc.wantEpoch || end != tc.wantEnd {
				t.Errorf("EndOffset(%d) = (%d, %d), want (%d, %d)", tc.epoch, e, end, tc.wantEpoch, tc.wantEnd)
			}
		})
	}
	if e, end := (Cache{}).EndOffset(0, 15); e != NoEpoch || end != NoOffset {
		t.Errorf("an empty cache answers (%d, %d), want none", e, end)
	}
}

func TestCacheRebuiltFromBatches(t *testing.T) { // E11
	var c Cache
	for offset, e := range []LeaderEpoch{0, 0, 2} {
		c.Assign(e, Offset(offset))
	}
	if got, want := c.String(), "{0:0,2:2}"; got != want {
		t.Errorf("cache %s, want %s", got, want)
	}
}

func TestCacheEpochAt(t *testing.T) {
	c := cacheOf(t, 1, 4, 3, 10)
	for offset, want := range map[Offset]LeaderEpoch{3: NoEpoch, 4: 1, 9: 1, 10: 3, 99: 3} {
		if got := c.EpochAt(offset); got != want {
			t.Errorf("EpochAt(%d) = %d, want %d", offset, got, want)
		}
	}
}

func TestNewCacheRefusesWhatDoesNotIncrease(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"epoch repeats": {{1, 0}, {1, 5}}, "start repeats": {{1, 5}, {2, 5}}, "epoch falls": {{2, 0}, {1, 5}},
		"negative epoch": {{-1, 0}}, "negative start": {{0, -1}},
	} {
		if _, err := NewCache(entries); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCacheValuesDoNotShareChanges(t *testing.T) {
	c := cacheOf(t, 1, 0, 2, 5)
	d := c
	c.TruncateFromEnd(5)
	c.Assign(7, 6)
	if got, want := d.String(), "{1:0,2:5}"; got != want {
		t.Errorf("a copy changed with the original: %s, want %s", got, want)
	}
}
