package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsHoldTheirValuesWithinTheirWidth(t *testing.T) {
	values := []uint64{0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 1<<20 - 1, 1 << 20, 1<<62 + 12345, 1<<63 - 1}
	for _, v := range values {
		top := highest(bucket(v))
		if top < v || float64(top-v) > float64(v)/subBuckets {
			t.Errorf("%d is in a bucket that ends at %d", v, top)
		}
		if bucket(top) != bucket(v) || bucket(top+1) == bucket(v) {
			t.Errorf("the bucket of %d does not end at %d", v, top)
		}
	}
}

func TestQuantilesAreThoseOfTheSortedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a, b Histogram
	var all []time.Duration
	for i := range 10_000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.99, 0.999, 1} {
		want := all[int(q*float64(len(all)))-1]
		if got := a.Quantile(q); got < want || got > want+want/subBuckets+1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestAnEmptyHistogramHasNoQuantile(t *testing.T) {
	var h Histogram
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("got %v", got)
	}
}
