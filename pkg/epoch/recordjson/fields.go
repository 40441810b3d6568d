package recordjson

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

type fields = map[string]json.RawMessage

// knownKeys lists the JSON keys of a struct type, true for those that every text
// has: a field added within version 1 must be optional.
func knownKeys(t reflect.Type) map[string]bool {
	keys := make(map[string]bool, t.NumField())
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys[name] = !strings.Contains(options, "omit")
	}
	return keys
}

var (
	stateKeys   = knownKeys(reflect.TypeFor[state]())
	replicaKeys = knownKeys(reflect.TypeFor[epoch.Replica]())
)

// exact decodes a JSON object into the struct at v, by exactly spelled keys only.
// A required key that is missing is an error: zero would be a guess.
func exact[T any](b []byte, v *T) error {
	var m fields
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	keys := knownKeys(reflect.TypeFor[T]())
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if raw, ok := m[k]; keys[k] && (!ok || string(raw) == "null") {
			return fmt.Errorf("%w: it has no %q", ErrMalformed, k)
		}
	}
	drop(m, keys, false)
	known, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := json.Unmarshal(known, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// unknownFields collects what previous holds beyond version 1: at the top, and by
// replica.
func unknownFields(previous []byte) (fields, map[epoch.ReplicaID]fields, error) {
	if len(previous) == 0 {
		return nil, nil, nil
	}
	if err := readVersion(previous); err != nil {
		return nil, nil, err
	}
	var top fields
	if err := json.Unmarshal(previous, &top); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var list []fields
	if raw, ok := top["replicas"]; ok {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	byID := make(map[epoch.ReplicaID]fields, len(list))
	for _, m := range list {
		var id epoch.ReplicaID
		if err := json.Unmarshal(m["id"], &id); err != nil {
			return nil, nil, fmt.Errorf("%w: a replica without an id", ErrMalformed)
		}
		drop(m, replicaKeys, true)
		byID[id] = m
	}
	drop(top, stateKeys, true)
	return top, byID, nil
}

// drop removes the known keys from m, or the unknown ones.
func drop(m fields, keys map[string]bool, known bool) {
	maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool {
		_, ok := keys[k]
		return ok == known
	})
}

// withFields encodes v with extra fields behind its own.
func withFields(v any, extra fields) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the partition record: %w", err)
	}
	if len(extra) == 0 {
		return b, nil
	}
	e, err := json.Marshal(extra)
	if err != nil {
		return nil, fmt.Errorf("encode the partition record: %w", err)
	}
	// Both are objects with at least one field, so they join at the braces; the
	// known fields keep their order, which keeps the text readable.
	return append(append(b[:len(b)-1], ','), e[1:]...), nil
}
