package logtool

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// printer writes entries for a person: a heading before each group, then aligned lines.
type printer struct {
	w     io.Writer
	group string // of the line before
}

const batchHeading = "    position       first        last  records  epoch  codec   greatest time                  bytes  checksum  producer           flags"

const producerHeading = "                producer  epoch  last sequence   last offset  records  time                      transaction from"

func (p *printer) print(entry any) error {
	var err error
	line := func(group, heading, format string, args ...any) {
		if group != p.group {
			p.group = group
			if heading != "" {
				_, err = fmt.Fprintf(p.w, "\n%s\n", heading)
			}
		}
		if err == nil && format != "" {
			_, err = fmt.Fprintf(p.w, format+"\n", args...)
		}
	}
	switch e := entry.(type) {
	case logEntry:
		state := "in use, or not stopped in good order"
		if e.Clean {
			state = "stopped in good order"
		}
		line("log", "", "log       %s\ntopic     %s, partition %d, topic id %s\nstate     %s", e.Name, e.Topic, e.Partition, orDash(e.TopicID), state)
	case propertyEntry:
		line("properties", "meta.properties", "    %-20s  %s", e.Key, e.Value)
	case checkpointEntry:
		line("checkpoints", "checkpoints", "    %-32s  %12d", e.File, e.Offset)
	case epochEntry:
		line("epochs", "leader epochs", "    epoch %8d  from offset %12d", e.Epoch, e.Start)
	case segmentEntry:
		line(e.File, e.File+"\n"+batchHeading, "")
	case batchEntry:
		line(e.File, e.File, "%12d%12d%12d%9d%7d  %-6s  %-24s%12d  %-8s  %-17s  %s", e.Position, e.Base, e.Last, e.Count, e.LeaderEpoch, e.Codec,
			moment(e.MaxTimestamp), e.Size, checksum(e), producer(e), flags(e))
	case recordEntry:
		line(p.group, "", "%12s  %d  %s  key %s  value %s%s", "", e.Offset, moment(e.Timestamp), quoted(e.key), quoted(e.value), headers(e.Headers))
	case offsetIndexEntry:
		line(e.File, e.File+"\n      offset    position", "%12d%12d", e.Offset, e.Position)
	case timeIndexEntry:
		line(e.File, e.File+"\n      offset  greatest time up to there", "%12d  %s", e.Offset, moment(e.Timestamp))
	case snapshotEntry:
		line(e.File, e.File+"\n"+producerHeading, "")
	case producerEntry:
		transaction := "-"
		if e.TransactionStart >= 0 {
			transaction = strconv.FormatInt(int64(e.TransactionStart), 10)
		}
		line(e.File, e.File, "%24d%7d%15d%14d%9d  %-24s  %s", e.ProducerID, e.ProducerEpoch, e.LastSequence, e.LastOffset, int64(e.OffsetDelta)+1, moment(e.Timestamp), transaction)
	case damageEntry:
		at := e.File
		if e.Position != nil {
			at = fmt.Sprintf("%s:%d", e.File, *e.Position)
		}
		line(p.group, "", "    damage  %s  %s", at, e.Error)
	}
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// moment is a timestamp in milliseconds, in UTC; of years that nobody means, the number.
func moment(ms int64) string {
	const year1, year9999 = -62135596800000, 253402300799999
	switch {
	case ms == -1:
		return "-"
	case ms < year1 || ms > year9999:
		return strconv.FormatInt(ms, 10)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func checksum(e batchEntry) string {
	if e.CRCValid {
		return "right"
	}
	return "WRONG"
}

func producer(e batchEntry) string {
	if e.ProducerID < 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d/%d", e.ProducerID, e.ProducerEpoch, e.BaseSequence)
}

func flags(e batchEntry) string {
	var out []string
	if e.TimestampType != "create" {
		out = append(out, "append-time")
	}
	if e.Transactional {
		out = append(out, "transactional")
	}
	if e.Control {
		out = append(out, "control")
	}
	if e.DeleteHorizon != nil {
		out = append(out, "delete-horizon="+moment(*e.DeleteHorizon))
	}
	return orDash(strings.Join(out, ","))
}

func quoted(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

func headers(hs []headerEntry) string {
	var b strings.Builder
	for _, h := range hs {
		fmt.Fprintf(&b, "  %s=%s", strconv.Quote(h.Key), quoted(h.value))
	}
	return b.String()
}
