package recordjson

import (
	"encoding/json"
	"fmt"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// recovery is the text form of epoch.Recovery: the newest record reported is a record
// in a record, by the same format. It never holds another recovery.
type recovery struct {
	epoch.Recovery
	Newest json.RawMessage `json:"newest,omitempty"`
}

func encodeRecovery(v *epoch.Recovery) (*recovery, error) {
	if v == nil {
		return nil, nil
	}
	out := &recovery{Recovery: *v}
	if v.Newest != nil {
		b, err := Marshal(*v.Newest, nil)
		if err != nil {
			return nil, fmt.Errorf("the newest record reported for recovery: %w", err)
		}
		out.Newest = b
	}
	return out, nil
}

func decodeRecovery(v *recovery) (*epoch.Recovery, error) {
	if v == nil {
		return nil, nil
	}
	out := v.Recovery
	if len(v.Newest) > 0 {
		r, err := Unmarshal(v.Newest)
		if err != nil {
			return nil, fmt.Errorf("the newest record reported for recovery: %w", err)
		}
		out.Newest = &r
	}
	return &out, nil
}

// checkRecovery keeps records from nesting, and reports in the one order that equal
// recoveries have.
func checkRecovery(r epoch.Record) string {
	v := r.Recovery
	if v == nil {
		return ""
	}
	for i, w := range v.Reports {
		if w.ID < 0 || i > 0 && w.ID <= v.Reports[i-1].ID {
			return fmt.Sprintf("the report of replica %d does not follow that of another", w.ID)
		}
	}
	for i, id := range v.Assigned {
		if id < 0 || i > 0 && id <= v.Assigned[i-1] {
			return fmt.Sprintf("replica %d, reported as assigned, does not follow another", id)
		}
	}
	switch {
	case v.Newest == nil:
		return ""
	case v.Newest.Recovery != nil:
		return "the newest record reported for recovery waits for recovery itself"
	case v.Newest.TopicID != r.TopicID:
		return "the newest record reported for recovery is of another topic id"
	}
	return ""
}
