package recordjson

import (
	"encoding/json"
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// MarshalProgress writes p. Unlike the state it carries nothing over from an older
// text: progress is what its one writer knows now.
func MarshalProgress(p epoch.Progress) ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the partition's progress: %w", err)
	}
	return b, nil
}

// UnmarshalProgress reads what MarshalProgress wrote. The error wraps ErrMalformed.
func UnmarshalProgress(b []byte) (epoch.Progress, error) {
	if len(b) > MaxBytes {
		return epoch.Progress{}, fmt.Errorf("%w: progress of %d bytes, at most %d are read", ErrMalformed, len(b), MaxBytes)
	}
	// Absent fields mean "not known", which is not offset 0.
	p := epoch.Progress{HighWatermark: epoch.NoOffset, LogStartOffset: epoch.NoOffset, TookOver: epoch.NoEpoch}
	if err := exact(b, &p); err != nil {
		return epoch.Progress{}, fmt.Errorf("progress: %w", err)
	}
	p.Replicas = orNil(p.Replicas)
	return p, nil
}
