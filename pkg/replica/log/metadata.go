package log

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

const metadataFile = "partition.metadata"

func parseMetadata(data []byte) (epoch.UUID, error) {
	var id epoch.UUID
	rest, ok := strings.CutPrefix(string(data), "version: 0\ntopic_id: ")
	if !ok {
		return id, fmt.Errorf("%w: %s is not of version 0", ErrTopicID, metadataFile)
	}
	id, err := epoch.ParseUUID(strings.TrimSuffix(rest, "\n"))
	if err != nil {
		return id, fmt.Errorf("%w: %s: %w", ErrTopicID, metadataFile, err)
	}
	return id, nil
}

func formatMetadata(id epoch.UUID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", id) // no newline at its end: as Kafka writes it
}

// claimDirectory checks that the directory belongs to the topic id, or makes an
// empty one belong to it, durably and so before the first byte of data. Data of
// another topic id, or of none, is never adopted (KAFKA-16157, KAFKA-16814).
func claimDirectory(fsys vfs.FS, dir string, id epoch.UUID, empty bool) error {
	name := path.Join(dir, metadataFile)
	data, err := vfs.ReadFile(fsys, name, checkpointLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist) && empty:
		if err := vfs.WriteFileAtomic(fsys, name, formatMetadata(id)); err != nil {
			return fmt.Errorf("write %s: %w", metadataFile, err)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s has segments but no %s; set the directory aside", ErrTopicID, dir, metadataFile)
	case err != nil:
		return fmt.Errorf("read %s: %w", metadataFile, err)
	}
	have, err := parseMetadata(data)
	if err != nil {
		return err
	}
	if have != id {
		return fmt.Errorf("%w: %s is of topic id %s, expected %s; set the directory aside", ErrTopicID, dir, have, id)
	}
	return nil
}
