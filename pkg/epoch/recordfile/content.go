package recordfile

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

const maxBytes = 4 * recordjson.MaxBytes

// content is the file. Version is 1 after Create and grows by one with every write.
type content struct {
	Version   uint64          `json:"version"`
	State     json.RawMessage `json:"state"`
	Progress  json.RawMessage `json:"progress,omitempty"`
	Heartbeat heartbeat       `json:"heartbeat,omitzero"`

	raw []byte // as it was read
}

type heartbeat struct {
	Renewed              time.Time `json:"renewed,omitzero"`
	Acquired             time.Time `json:"acquired,omitzero"`
	DurationMilliseconds int64     `json:"durationMilliseconds,omitempty"`
}

// encode gives the file that follows old.
func encode(old content, r epoch.Record) ([]byte, error) {
	state, err := recordjson.Marshal(r, old.State)
	if err != nil {
		return nil, err
	}
	c := content{Version: old.Version + 1, State: state, Heartbeat: heartbeat{
		Renewed: r.Heartbeat.Renewed.UTC(), Acquired: r.Heartbeat.Acquired.UTC(), DurationMilliseconds: r.Heartbeat.Duration.Milliseconds()}}
	if r.Progress != nil {
		if c.Progress, err = recordjson.MarshalProgress(*r.Progress); err != nil {
			return nil, err
		}
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

func decode(b []byte) (content, epoch.Record, error) {
	c := content{raw: b}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, epoch.Record{}, fmt.Errorf("%w: %w", recordjson.ErrMalformed, err)
	}
	if c.Version == 0 || c.Heartbeat.DurationMilliseconds < 0 || c.Heartbeat.DurationMilliseconds > int64(24*time.Hour/time.Millisecond) {
		return c, epoch.Record{}, fmt.Errorf("%w: version %d, heartbeat duration %d ms", recordjson.ErrMalformed, c.Version, c.Heartbeat.DurationMilliseconds)
	}
	r, err := recordjson.Unmarshal(c.State)
	if err != nil {
		return c, epoch.Record{}, err
	}
	if len(c.Progress) > 0 && string(c.Progress) != "null" {
		p, err := recordjson.UnmarshalProgress(c.Progress)
		if err != nil {
			return c, epoch.Record{}, err
		}
		r.Progress = &p
	}
	r.Heartbeat = epoch.Heartbeat{Renewed: c.Heartbeat.Renewed, Acquired: c.Heartbeat.Acquired,
		Duration: time.Duration(c.Heartbeat.DurationMilliseconds) * time.Millisecond}
	return c, r, nil
}
