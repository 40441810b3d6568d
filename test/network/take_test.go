package network

import "testing"

// A host that outlives 200 others keeps its number.
func TestNumbersInUseAreNotGivenOut(t *testing.T) {
	n := &Network{next: firstHost, taken: map[int]bool{}}
	kept, err := n.take()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * (lastHost - firstHost) {
		number, err := n.take()
		if err != nil || number == kept || number < firstHost || number > lastHost {
			t.Fatalf("host %d gets the number %d (%v), and %d is taken", i, number, err, kept)
		}
		n.free(number)
	}
	for range lastHost - firstHost {
		if _, err := n.take(); err != nil {
			t.Fatal(err)
		}
	}
	if number, err := n.take(); err == nil {
		t.Errorf("the number %d is given out twice", number)
	}
}
