package recordjson

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

type fields = map[string]json.RawMessage

// knownKeys lists the JSON keys of a struct type.
func knownKeys(t reflect.Type) map[string]bool {
	keys := make(map[string]bool, t.NumField())
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys[name] = true
	}
	return keys
}

var (
	stateKeys   = knownKeys(reflect.TypeFor[state]())
	replicaKeys = knownKeys(reflect.TypeFor[epoch.Replica]())
)

// exact decodes a JSON object into the struct at v, by exactly spelled keys only.
func exact[T any](b []byte, v *T) error {
	var m fields
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	keys := knownKeys(reflect.TypeFor[T]())
	maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool { return !keys[k] })
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
		maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool { return replicaKeys[k] })
		byID[id] = m
	}
	maps.DeleteFunc(top, func(k string, _ json.RawMessage) bool { return stateKeys[k] })
	return top, byID, nil
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
