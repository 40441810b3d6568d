package plugin

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"time"
)

// bundle is a compressed archive being written, with a list of what it lacks.
type bundle struct {
	top     string // directory that everything is in
	now     time.Time
	gz      *gzip.Writer
	tar     *tar.Writer
	missing []string
}

func newBundle(w io.Writer, top string, now time.Time) *bundle {
	gz := gzip.NewWriter(w)
	return &bundle{top: top, now: now, gz: gz, tar: tar.NewWriter(gz)}
}

// add writes a file. Why it could not be had is noted instead, if that is so.
func (b *bundle) add(name string, content []byte, err error) error {
	if err != nil {
		b.missing = append(b.missing, fmt.Sprintf("%s: %s", name, oneLine(err)))
		return nil
	}
	if err := b.tar.WriteHeader(&tar.Header{Name: b.top + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: b.now, Format: tar.FormatPAX}); err != nil {
		return fmt.Errorf("write %s into the report: %w", name, err)
	}
	if _, err := b.tar.Write(content); err != nil {
		return fmt.Errorf("write %s into the report: %w", name, err)
	}
	return nil
}

func (b *bundle) close() error {
	if err := b.tar.Close(); err != nil {
		return fmt.Errorf("finish the report: %w", err)
	}
	if err := b.gz.Close(); err != nil {
		return fmt.Errorf("finish the report: %w", err)
	}
	return nil
}
