package incluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestStartsAreCountedFromWhatThePodShows(t *testing.T) {
	tests := []struct {
		name  string
		shown int32 // restart count in the pod's status
		want  []int32
	}{
		{name: "a new pod", shown: 0, want: []int32{0, 1, 2}},
		{name: "a pod that a machine starts again after a power cut", shown: 3, want: []int32{3, 4, 5}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, want := range tc.want {
				got, err := countStarts(dir, func() (int32, error) { return tc.shown, nil })
				if err != nil || got != want {
					t.Errorf("start %d: got %d, %v, want %d", i, got, err, want)
				}
			}
		})
	}
}

func TestStartsThatCannotBeCountedAreAnError(t *testing.T) {
	if _, err := countStarts(t.TempDir(), func() (int32, error) { return 0, errors.New("no API server") }); err == nil {
		t.Error("no error when the pod cannot be read")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "starts"), []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := countStarts(dir, func() (int32, error) { return 0, nil }); err == nil {
		t.Error("no error for a file without a number")
	}
}
