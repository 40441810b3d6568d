package recordjson

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

type fields = map[string]json.RawMessage

// knownKeys lists the JSON keys of a struct type, true for those that every text
// has: a field added within version 1 must be optional.
func knownKeys(t reflect.Type) map[string]bool {
	keys := make(map[string]bool, t.NumField())
	for _, k := range keysOf(t) {
		keys[k.name] = k.required
	}
	return keys
}

var (
	stateKeys   = knownKeys(reflect.TypeFor[state]())
	replicaKeys = knownKeys(reflect.TypeFor[epoch.Replica]())
)

// key is one JSON key of a struct type.
type key struct {
	name     string
	field    int
	required bool
}

// shapes keeps the keys of struct types, in their order.
var shapes sync.Map // reflect.Type → []key

func keysOf(t reflect.Type) []key {
	if k, ok := shapes.Load(t); ok {
		return k.([]key)
	}
	keys := make([]key, t.NumField())
	for i := range keys {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys[i] = key{name, i, !strings.Contains(options, "omit")}
	}
	shapes.Store(t, keys)
	return keys
}

// exact decodes a JSON object into the struct at v, by exactly spelled keys only.
// A required key that is missing is an error: zero would be a guess.
func exact[T any](b []byte, v *T) error {
	m, err := split(b)
	if err != nil {
		return err
	}
	return assign(m, v)
}

func split(b []byte) (m fields, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return m, nil
}

// assign is exact for an object in its parts. Each part is decoded for itself, so that
// a key in another spelling is passed over, which package json would take for the same.
func assign[T any](m fields, v *T) error {
	to := reflect.ValueOf(v).Elem()
	for _, k := range keysOf(to.Type()) {
		raw, ok := m[k.name]
		if k.required && (!ok || string(raw) == "null") {
			return fmt.Errorf("%w: it has no %q", ErrMalformed, k.name)
		}
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, to.Field(k.field).Addr().Interface()); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrMalformed, k.name, err)
		}
	}
	return nil
}

// unknownFields collects what previous holds beyond version 1: at the top, and by
// replica.
func unknownFields(previous []byte) (fields, map[epoch.ReplicaID]fields, error) {
	if len(previous) == 0 {
		return nil, nil, nil
	}
	top, err := split(previous)
	if err != nil {
		return nil, nil, err
	}
	if err := checkVersion(top); err != nil {
		return nil, nil, err
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
		drop(m, replicaKeys)
		byID[id] = m
	}
	drop(top, stateKeys)
	return top, byID, nil
}

// drop removes the known keys from m.
func drop(m fields, keys map[string]bool) {
	maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool {
		_, known := keys[k]
		return known
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
