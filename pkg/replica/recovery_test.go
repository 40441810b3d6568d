package replica

import (
	"testing"
	"time"
)

func TestTellChecking(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		done, total int64
		took        time.Duration
		want        string
	}{
		{0, 3000 * mib, 0, "checked 0 of 3000 MiB of the log"},
		{1000 * mib, 3000 * mib, 5 * time.Second, "checked 1000 of 3000 MiB of the log, about 10s left"},
		{2999 * mib, 3000 * mib, time.Second, "checked 2999 of 3000 MiB of the log, about 1s left"},
		{3000 * mib, 3000 * mib, time.Second, "checked 3000 of 3000 MiB of the log"},
	} {
		if got := tellChecking(tc.done, tc.total, tc.took); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
