package logtool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/batch"
	"github.com/tidemark-io/tidemark/pkg/replica/log"
)

// DumpOptions say what Dump prints.
type DumpOptions struct {
	// JSON prints one object a line instead of text.
	JSON bool
	// Records prints the records of every batch, too.
	Records bool
}

// Dump prints everything in a directory. Damage is printed where it is met, and is no
// error.
func Dump(w io.Writer, in *log.Inspector, o DumpOptions) error {
	buf := bufio.NewWriterSize(w, 64<<10)
	d := &dumper{in: in, options: o}
	if o.JSON {
		enc := json.NewEncoder(buf)
		enc.SetEscapeHTML(false)
		d.print = func(entry any) error { return enc.Encode(entry) }
	} else {
		p := &printer{w: buf}
		d.print = p.print
	}
	err := d.all()
	return errors.Join(err, buf.Flush())
}

type dumper struct {
	in      *log.Inspector
	options DumpOptions
	print   func(entry any) error
}

func (d *dumper) all() error {
	for _, part := range []func() error{d.identity, d.checkpoints, d.epochs, d.segments, d.snapshots} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// damage prints what could not be read. A file that is not there is nothing to print.
func (d *dumper) damage(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e := damageEntry{Kind: "damage", File: file, Error: err.Error()}
	if bad := (*log.BadBytes)(nil); errors.As(err, &bad) {
		e.Position, e.Error = &bad.Position, fmt.Sprintf("%d bytes are no batches: %v", bad.Size-bad.Position, bad.Err)
	}
	return d.print(e)
}

func (d *dumper) identity() error {
	e := logEntry{Kind: "log", Name: d.in.Name, Topic: d.in.Topic, Partition: d.in.Partition, Clean: d.in.StoppedCleanly()}
	id, err := d.in.TopicID()
	if err == nil {
		e.TopicID = id.String()
	}
	if perr := d.print(e); perr != nil {
		return perr
	}
	if err != nil {
		if err := d.damage("partition.metadata", err); err != nil {
			return err
		}
	}
	properties, err := d.in.Identity()
	for _, p := range properties {
		if err := d.print(propertyEntry{"property", p.Key, p.Value}); err != nil {
			return err
		}
	}
	if err != nil {
		return d.damage("meta.properties", err)
	}
	return nil
}

func (d *dumper) checkpoints() error {
	for _, c := range d.in.Checkpoints() {
		var err error
		switch {
		case c.Err != nil:
			err = d.damage(c.File, c.Err)
		case c.Offset != epoch.NoOffset:
			err = d.print(checkpointEntry{"checkpoint", c.File, c.Offset})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumper) epochs() error {
	cache, err := d.in.Epochs()
	if err != nil {
		return d.damage("leader-epoch-checkpoint", err)
	}
	for _, e := range cache.Entries() {
		if err := d.print(epochEntry{"epoch", e.Epoch, e.Start}); err != nil {
			return err
		}
	}
	return nil
}

func name(base epoch.Offset, suffix string) string {
	return fmt.Sprintf("%020d%s", int64(base), suffix)
}

func (d *dumper) segments() error {
	for _, base := range d.in.Segments() {
		if err := d.segment(base); err != nil {
			return err
		}
	}
	return nil
}

func (d *dumper) segment(base epoch.Offset) error {
	file := name(base, ".log")
	if err := d.print(segmentEntry{"segment", file, base}); err != nil {
		return err
	}
	for b, err := range d.in.Batches(base) {
		if err != nil {
			if err := d.damage(file, err); err != nil {
				return err
			}
			break
		}
		if err := d.batch(file, b); err != nil {
			return err
		}
	}
	return d.indexes(base)
}

func (d *dumper) batch(file string, b log.StoredBatch) error {
	if err := d.print(newBatchEntry(file, b)); err != nil || !d.options.Records {
		return err
	}
	whole, err := b.Load()
	if err == nil {
		for r, rerr := range batch.AllRecords(whole) {
			if rerr != nil {
				err = rerr
				break
			}
			if err := d.print(newRecordEntry(r)); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return d.print(damageEntry{"damage", file, &b.Position, err.Error()})
	}
	return nil
}

func (d *dumper) indexes(base epoch.Offset) error {
	file := name(base, ".index")
	for e, err := range d.in.OffsetIndex(base) {
		if err != nil {
			err = d.damage(file, err)
		} else {
			err = d.print(offsetIndexEntry{"offsetIndex", file, e.Offset, e.Position})
		}
		if err != nil {
			return err
		}
	}
	file = name(base, ".timeindex")
	for e, err := range d.in.TimeIndex(base) {
		if err != nil {
			err = d.damage(file, err)
		} else {
			err = d.print(timeIndexEntry{"timeIndex", file, e.Timestamp, e.Offset})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumper) snapshots() error {
	for _, at := range d.in.Snapshots() {
		file := name(at, ".snapshot")
		entries, err := d.in.Snapshot(at)
		if err != nil {
			if err := d.damage(file, err); err != nil {
				return err
			}
			continue
		}
		if err := d.print(snapshotEntry{"snapshot", file, at, len(entries)}); err != nil {
			return err
		}
		for _, e := range entries {
			if err := d.print(producerEntry{"producer", file, e.ProducerID, e.ProducerEpoch, e.LastSequence, e.LastOffset, e.OffsetDelta,
				e.Timestamp, e.CoordinatorEpoch, e.TransactionStart}); err != nil {
				return err
			}
		}
	}
	return nil
}
