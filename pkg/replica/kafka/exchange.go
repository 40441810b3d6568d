package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errCloseQuietly closes the connection without blaming the client.
var errCloseQuietly = errors.New("connection closed on purpose")

// exchange is one request and the way to its answer.
type exchange struct {
	*conn
	*api
	header
	// frame holds the request. Produce hands it over to the partition and sets it
	// to nil.
	frame *frame
	// wait gives the response; nil, nil means that there is none (acks=0).
	wait func() (kmsg.Response, error)
	// after, if set, runs when the response has been written, or was given up.
	after func()
}

// handleNow decodes the request and runs its handler. It runs in the writer, so
// that one connection has one decoded request at a time, however many it has sent.
func (x *exchange) handleNow(req kmsg.Request, body []byte) (kmsg.Response, error) {
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %s version %d: %w", errMalformed, x.name, x.version, err)
	}
	return x.handle(x, x.polling, req)
}

func (x *exchange) done() {
	if x.after != nil {
		x.after()
		x.after = nil
	}
}

// fail counts a refusal and returns its code as the wire has it.
func (x *exchange) fail(code Code) int16 {
	if code != CodeNone {
		x.metrics.error(x.name, code)
	}
	return int16(code)
}

// code maps an error of the partition, counts it, and logs it if it has no code of
// its own: nobody else would ever see it.
func (x *exchange) code(err error) Code {
	code := CodeOf(err)
	if code == CodeNone {
		return code
	}
	if code == CodeUnknownServerError {
		x.Log.Error(err, "request failed", "listener", x.Listener.String(), "api", x.name, "remote", x.nc.RemoteAddr().String())
	}
	x.metrics.error(x.name, code)
	return code
}

// ours reports whether a topic is the one that is served: by its name, or by its id
// in the versions that use ids.
func (v View) ours(name string, id [16]byte, byID bool) bool {
	if byID {
		return id == [16]byte(v.TopicID)
	}
	return name == v.Topic
}

// unknownTopic is the refusal of a topic that is not ours.
func unknownTopic(byID bool) Code {
	if byID {
		return CodeUnknownTopicID
	}
	return CodeUnknownTopicOrPartition
}
