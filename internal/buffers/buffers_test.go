package buffers

import "testing"

func TestGet(t *testing.T) {
	for _, n := range []int{0, 1, Smallest, Smallest + 1, 100_000, Largest, Largest + 1} {
		b := Get(n)
		if len(b) != n {
			t.Errorf("Get(%d) returns %d bytes", n, len(b))
		}
		Put(b)
		Put(make([]byte, n)) // of any size, from anywhere
		if b := Get(n); len(b) != n {
			t.Errorf("Get(%d) returns %d bytes the second time", n, len(b))
		}
	}
}

func TestBuffersInUseAreNotShared(t *testing.T) {
	a, b := Get(5000), Get(5000)
	a[0], b[0] = 1, 2
	Put(a)
	c := Get(6000)
	if c[0] = 3; b[0] != 2 {
		t.Error("two users have the same buffer")
	}
}
