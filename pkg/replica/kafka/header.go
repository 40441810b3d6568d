package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxTags bounds the tagged fields that a request may carry in one place. All that
// this server does not know are skipped; clients send a handful at most.
const maxTags = 64

// header is a request's header; versions 1 and 2 differ in the tagged fields.
type header struct {
	key, version  int16
	correlationID int32
	// clientID is "" when the client sent none. The replicas send their start id.
	clientID string
}

// parseKey reads the part of the header that is the same in every version.
func parseKey(b []byte) (header, error) {
	r := kbin.Reader{Src: b}
	h := header{key: r.Int16(), version: r.Int16(), correlationID: r.Int32()}
	if !r.Ok() {
		return h, fmt.Errorf("%w: header is cut short", errMalformed)
	}
	return h, nil
}

// parseRest reads what follows in a header and returns the request's body.
func (h *header) parseRest(b []byte, flexible bool) ([]byte, error) {
	r := kbin.Reader{Src: b[minFrame:]}
	// The client id is never compact, not even in flexible headers (KIP-511).
	if id := r.NullableString(); id != nil {
		h.clientID = *id
	}
	if flexible && !skipTags(&r) || !r.Ok() {
		return nil, fmt.Errorf("%w: header of %s version %d", errMalformed, kmsg.NameForKey(h.key), h.version)
	}
	return r.Src, nil
}

// skipTags skips tagged fields and reports whether they were sound.
func skipTags(r *kbin.Reader) bool {
	n := r.Uvarint()
	if n > maxTags {
		return false
	}
	for ; n > 0 && r.Ok(); n-- {
		r.Uvarint()
		size := r.Uvarint()
		if int64(size) > int64(len(r.Src)) {
			return false
		}
		r.Span(int(size))
	}
	return r.Ok()
}

// appendResponse appends a framed response: size, header, body. The header of an
// ApiVersions answer is never flexible, since a client reads it before it knows
// which versions the server speaks (KIP-511).
func appendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	start := len(dst)
	dst = kbin.AppendInt32(dst, 0)
	dst = kbin.AppendInt32(dst, correlationID)
	if resp.IsFlexible() && resp.Key() != keyAPIVersions {
		dst = append(dst, 0)
	}
	dst = resp.AppendTo(dst)
	kbin.AppendInt32(dst[start:start], int32(len(dst)-start-4))
	return dst
}

// skipHeaderTags skips the tagged fields that end a flexible header.
func skipHeaderTags(b []byte) ([]byte, error) {
	r := kbin.Reader{Src: b}
	if !skipTags(&r) {
		return nil, errors.New("tagged fields of the response header are malformed")
	}
	return r.Src, nil
}
