package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-io/tidemark/pkg/replica/batch"
)

// This file words, as Kafka does, why a batch is refused for some of its records (KIP-467).

// recordRefused is the message about one record.
func recordRefused(e *batch.RecordsError, r batch.RefusedRecord, topic string) string {
	if r.NoKey {
		return fmt.Sprintf("Compacted topic cannot accept message without key in topic partition %s-0.", topic)
	}
	return fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
		r.Timestamp, r.Place, e.Earliest, e.Latest)
}

// recordsRefused is the message about the batch.
func recordsRefused(e *batch.RecordsError, topic string) string {
	if errors.Is(e, batch.ErrInvalidTimestamp) {
		return "One or more records have been rejected due to invalid timestamp"
	}
	var shown []string
	for _, r := range e.Records[:min(len(e.Records), 3)] {
		shown = append(shown, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", r.Place, recordRefused(e, r, topic)))
	}
	return fmt.Sprintf("One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
		e.Count, strings.Join(shown, ", "))
}

// recordErrors lists the first of them.
func recordErrors(e *batch.RecordsError, topic string) []kmsg.ProduceResponseTopicPartitionErrorRecord {
	out := make([]kmsg.ProduceResponseTopicPartitionErrorRecord, len(e.Records))
	for i, r := range e.Records {
		message := recordRefused(e, r, topic)
		out[i].RelativeOffset, out[i].ErrorMessage = r.Place, &message
	}
	return out
}
