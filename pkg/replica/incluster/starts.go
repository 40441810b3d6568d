package incluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// countStarts tells which start of this pod's container this is, by kubelet's
// restart count. The API server learns of a restart only after it, so the starts
// are counted in a file that lives as long as the pod.
//
// A machine that lost power loses the file and starts the same pod again, and
// kubelet goes on counting. So where there is no file the count begins at what the
// pod's status shows: kubelet reports that the old container is gone before it
// starts another. Without a directory it is 0.
func countStarts(dir string, shown func() (int32, error)) (int32, error) {
	if dir == "" {
		return 0, nil
	}
	name := filepath.Join(dir, "starts")
	n, err := nextStart(name, shown)
	if err != nil {
		return 0, fmt.Errorf("count the starts of this container: %w", err)
	}
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, []byte(strconv.Itoa(int(n))), 0o600); err != nil {
		return 0, err
	}
	return n, os.Rename(tmp, name)
}

func nextStart(name string, shown func() (int32, error)) (int32, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return shown()
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return int32(n) + 1, nil
}
